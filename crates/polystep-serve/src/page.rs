//! The page: three files, embedded.

use axum::http::header;
use axum::response::{IntoResponse, Response};

/// The page's files: where they are, what they are, and their text.
const FILES: [(&str, &str, &str); 8] = [
    ("/", "text/html; charset=utf-8", include_str!("../page/index.html")),
    ("/style.css", "text/css; charset=utf-8", include_str!("../page/style.css")),
    ("/page.js", "text/javascript; charset=utf-8", include_str!("../page/page.js")),
    ("/formula.js", "text/javascript; charset=utf-8", include_str!("../page/formula.js")),
    ("/prove.js", "text/javascript; charset=utf-8", include_str!("../page/prove.js")),
    ("/runs.js", "text/javascript; charset=utf-8", include_str!("../page/runs.js")),
    ("/tables.js", "text/javascript; charset=utf-8", include_str!("../page/tables.js")),
    ("/icon.svg", "image/svg+xml", include_str!("../page/icon.svg")),
];

/// The file at a path.
pub fn file(path: &str) -> Option<Response> {
    let (_, kind, text) = FILES.into_iter().find(|(at, ..)| *at == path)?;
    Some(([(header::CONTENT_TYPE, kind)], text).into_response())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The whole page is small, and nothing on it comes from a network.
    #[test]
    fn the_page_is_small_and_needs_nobody() {
        let bytes: usize = FILES.iter().map(|(.., text)| text.len()).sum();
        assert!(bytes < 200_000, "{bytes} bytes");
        for (path, _, text) in FILES {
            let urls = text.split("http").skip(1).filter(|rest| rest.starts_with("://") || rest.starts_with("s://"));
            let foreign: Vec<&str> = urls.filter(|url| !url.starts_with("://www.w3.org/2000/svg")).collect();
            assert!(foreign.is_empty(), "{path}: {foreign:?}");
            for markup in ["innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval("] {
                assert!(!text.contains(markup), "{path} uses {markup}: what was typed would be markup");
            }
        }
    }
}
