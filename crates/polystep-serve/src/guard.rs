//! What comes from elsewhere is refused, and every answer carries the headers that keep the page safe.
//!
//! The decision a reader would get wrong: a server on 127.0.0.1 is not private. Any web page can send requests to it, and a
//! name that its owner points at 127.0.0.1 makes its pages look like ours (DNS rebinding). So the `Host` must be a name of
//! this machine, and an `Origin` must be this very page.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, Uri, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use tokio::task::JoinSet;

use crate::App;
use crate::error::Refusal;

/// Nothing but our own files; no inline script or style, no frame around the page, no form.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
    base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
];

/// The longest header, and the longest address, in bytes. No browser sends as much.
const LONGEST: [usize; 2] = [16 * 1024, 8 * 1024];

/// By which names the server is known.
pub struct Hosts {
    bound: SocketAddr,
    names: Vec<String>,
}

impl Hosts {
    /// A server on this address, with further names.
    pub fn new(bound: SocketAddr, names: &[String]) -> Hosts {
        Hosts { bound, names: names.iter().map(|name| name.to_lowercase()).collect() }
    }

    /// Whether a `Host` means this server. A name must be known. Without names, an address is enough where the server is
    /// reached from elsewhere; on the loopback it must be a loopback address.
    fn knows(&self, host: &str) -> bool {
        let (name, port) = split(host);
        let name = name.to_lowercase();
        if self.names.contains(&name) {
            return true;
        }
        let address = name.trim_start_matches('[').trim_end_matches(']').parse::<IpAddr>();
        let ours = match address {
            Ok(address) if self.bound.ip().is_loopback() => address.is_loopback(),
            Ok(_) => true,
            Err(_) => name == "localhost",
        };
        ours && port.unwrap_or("80") == self.bound.port().to_string()
    }

    /// Refuses requests that are meant for somebody else, or that somebody else's page sends.
    pub fn admit(&self, headers: &HeaderMap, uri: &Uri) -> Result<(), Refusal> {
        let refuse = |sentence: &str| Err(Refusal::new(StatusCode::FORBIDDEN, sentence));
        let header: usize = headers.iter().map(|(name, value)| name.as_str().len() + value.len()).sum();
        if header > LONGEST[0] {
            return Err(Refusal::new(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, "the header is too long"));
        }
        if uri.path().len() + uri.query().map_or(0, str::len) > LONGEST[1] {
            return Err(Refusal::new(StatusCode::URI_TOO_LONG, "the address is too long"));
        }
        let mut hosts = headers.get_all(header::HOST).iter();
        let host = match (hosts.next().map(HeaderValue::to_str), hosts.next()) {
            (Some(Ok(host)), None) => host,
            _ => return Err(Refusal::bad_request("a request has exactly one Host")),
        };
        let named = uri.authority().is_none_or(|authority| self.knows(authority.as_str()));
        if !self.knows(host) || !named {
            return refuse("this server does not answer to that Host: name it with --allow-host");
        }
        for origin in headers.get_all(header::ORIGIN) {
            let same = |origin: &str| origin.split_once("://").is_some_and(|(_, rest)| rest.eq_ignore_ascii_case(host));
            if !origin.to_str().is_ok_and(same) {
                return refuse("requests from another page are refused");
            }
        }
        let site = headers.get("sec-fetch-site").map(HeaderValue::as_bytes);
        if !matches!(site, None | Some(b"same-origin" | b"none")) && uri.path().starts_with("/api/") {
            return refuse("requests from another page are refused");
        }
        Ok(())
    }
}

/// Name and port of a `Host`.
fn split(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !port.contains(']') => (name, Some(port)),
        _ => (host, None),
    }
}

/// Admits a request, isolates it, and adds the headers to its answer. A panic ends this request alone; a client that goes
/// away ends it, too.
pub async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let mut response = match app.hosts.admit(request.headers(), request.uri()) {
        Err(refusal) => refusal.into_response(),
        Ok(()) => {
            // Tasks of a set end with it.
            let mut alone = JoinSet::new();
            alone.spawn(next.run(request));
            let panicked = || Refusal::internal("this request failed: please report it").into_response();
            alone.join_next().await.and_then(Result::ok).unwrap_or_else(panicked)
        }
    };
    for (name, value) in HEADERS {
        response.headers_mut().entry(name).or_insert(HeaderValue::from_static(value));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admitted(bound: &str, headers: &[(&'static str, &str)], uri: &str) -> bool {
        let hosts = Hosts::new(bound.parse().unwrap(), &["Lab.example".to_owned()]);
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, value.parse().unwrap());
        }
        hosts.admit(&map, &uri.parse().unwrap()).is_ok()
    }

    #[test]
    fn only_names_of_this_server_are_answered() {
        let host = |host| admitted("127.0.0.1:8017", &[("host", host)], "/");
        for good in
            ["127.0.0.1:8017", "localhost:8017", "LOCALHOST:8017", "[::1]:8017", "lab.example", "lab.example:443"]
        {
            assert!(host(good), "{good}");
        }
        for bad in [
            "evil.example",
            "evil.example:8017",
            "localhost",
            "localhost:80",
            "10.0.0.1:8017",
            "",
            "localhost.evil.example:8017",
            "127.0.0.1:8017:8017",
            "[::1",
        ] {
            assert!(!host(bad), "{bad}");
        }
        assert!(!admitted("127.0.0.1:8017", &[], "/"), "no Host");
        assert!(!admitted("127.0.0.1:8017", &[("host", "localhost:8017"), ("host", "localhost:8017")], "/"));
        assert!(!admitted("127.0.0.1:8017", &[("host", "localhost:8017")], "http://evil.example/"));
        assert!(admitted("0.0.0.0:80", &[("host", "10.1.2.3")], "/"), "an address cannot be a stranger's name");
        assert!(!admitted("0.0.0.0:80", &[("host", "evil.example")], "/"));
    }

    #[test]
    fn only_our_own_page_may_ask() {
        let with =
            |name, value| admitted("127.0.0.1:8017", &[("host", "localhost:8017"), (name, value)], "/api/models");
        assert!(with("origin", "http://localhost:8017") && with("sec-fetch-site", "same-origin"));
        for bad in ["http://evil.example", "null", "http://localhost:8018", "http://127.0.0.1:8017", ""] {
            assert!(!with("origin", bad), "{bad}");
        }
        assert!(!with("sec-fetch-site", "cross-site") && !with("sec-fetch-site", "same-site"));
    }
}
