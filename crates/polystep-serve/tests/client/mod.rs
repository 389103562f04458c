//! A small HTTP client that can also misbehave: requests are bytes, and answers are read from a socket.
#![allow(dead_code, reason = "each program uses a part of it")]

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// An answer.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: String,
}

impl Answer {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| value.as_str())
    }

    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }
}

/// A connection that is kept alive.
pub struct Connection {
    address: SocketAddr,
    stream: BufReader<TcpStream>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> io::Result<Connection> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(90)))?;
        Ok(Connection { address, stream: BufReader::new(stream) })
    }

    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// The answer to what was sent.
    pub fn answer(&mut self) -> io::Result<Answer> {
        let mut answer = self.head()?;
        let mut body = Vec::new();
        if answer.header("transfer-encoding") == Some("chunked") {
            while let Some(chunk) = self.chunk()? {
                body.extend(chunk);
            }
        } else {
            let length = answer.header("content-length").and_then(|n| n.parse().ok()).unwrap_or(0);
            body.resize(length, 0);
            self.stream.read_exact(&mut body)?;
        }
        answer.body = String::from_utf8(body).map_err(io::Error::other)?;
        Ok(answer)
    }

    /// Status and headers of an answer whose body follows.
    pub fn head(&mut self) -> io::Result<Answer> {
        let mut line = || -> io::Result<String> {
            let mut text = String::new();
            match self.stream.read_line(&mut text)? {
                0 => Err(io::ErrorKind::UnexpectedEof.into()),
                _ => Ok(text.trim_end().to_owned()),
            }
        };
        let status = line()?.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or(io::ErrorKind::InvalidData)?;
        let mut headers = Vec::new();
        loop {
            let text = line()?;
            match text.split_once(':') {
                Some((name, value)) => headers.push((name.to_lowercase(), value.trim().to_owned())),
                None => return Ok(Answer { status, headers, body: String::new() }),
            }
        }
    }

    /// The next chunk of a body.
    pub fn chunk(&mut self) -> io::Result<Option<Vec<u8>>> {
        let mut size = String::new();
        self.stream.read_line(&mut size)?;
        let size = usize::from_str_radix(size.trim(), 16).map_err(io::Error::other)?;
        let mut chunk = vec![0; size + 2];
        self.stream.read_exact(&mut chunk)?;
        chunk.truncate(size);
        Ok((size > 0).then_some(chunk))
    }

    pub fn get(&mut self, path: &str) -> io::Result<Answer> {
        let request = format!("GET {path} HTTP/1.1\r\nHost: {}\r\n\r\n", self.address);
        self.send(request.as_bytes())?;
        self.answer()
    }

    pub fn post(&mut self, path: &str, body: &str) -> io::Result<Answer> {
        self.send(&post(self.address, path, "application/json", body))?;
        self.answer()
    }
}

/// A request with a JSON body.
pub fn post(address: SocketAddr, path: &str, accept: &str, body: &str) -> Vec<u8> {
    let head =
        format!("POST {path} HTTP/1.1\r\nHost: {address}\r\nContent-Type: application/json\r\nAccept: {accept}\r\n");
    format!("{head}Content-Length: {}\r\n\r\n{body}", body.len()).into_bytes()
}

/// A JSON object with an expression to prove.
pub fn expression(expr: &str) -> String {
    serde_json::json!({ "expr": expr }).to_string()
}
