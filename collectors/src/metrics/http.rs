//! A page over plain HTTP/1.1 with the standard library: bounded in time and in size, because the other side may be slow,
//! broken or something else altogether. No redirects and no TLS: metrics are read from inside the cluster.

use std::{
    fmt,
    io::{self, Read, Write},
    net::{TcpStream, ToSocketAddrs},
    time::{Duration, Instant},
};

/// Bytes of a head, and of a page; pages of engines have some hundred kilobytes.
const MOST_HEAD: usize = 64 << 10;
const MOST_BODY: usize = 8 << 20;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Not an address that is understood.
    #[error("'{0}' is no address of a page; write http://HOST:PORT/metrics")]
    Url(String),
    /// TLS is not spoken.
    #[error("'{0}' asks for TLS, which is not spoken here; name the engine's own port with http://")]
    Tls(String),
    /// The other side cannot be reached, or ended.
    #[error("{url}: {source}; is the engine running, and does it serve metrics there?")]
    Io {
        /// The page.
        url: String,
        /// What happened.
        source: io::Error,
    },
    /// It took too long.
    #[error("{url}: no whole answer within {seconds:.1} s; the engine may be busy or the address wrong")]
    Slow {
        /// The page.
        url: String,
        /// How long it was waited for.
        seconds: f64,
    },
    /// It answered something else.
    #[error("{url}: {what}")]
    Answer {
        /// The page.
        url: String,
        /// What it answered.
        what: String,
    },
}

/// Address of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    host: String,
    port: u16,
    path: String,
}

impl Url {
    /// Reads `http://HOST[:PORT][/PATH]`; without a path `/metrics` is meant.
    ///
    /// # Errors
    /// What is no such address.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let refuse = || Error::Url(text.to_owned());
        if text.starts_with("https://") {
            return Err(Error::Tls(text.to_owned()));
        }
        let rest = text.strip_prefix("http://").unwrap_or(text);
        let (authority, path) = rest.find('/').map_or((rest, ""), |at| rest.split_at(at));
        let (host, port) = match authority.strip_prefix('[') {
            Some(v6) => {
                let (host, after) = v6.split_once(']').ok_or_else(refuse)?;
                (host, after.strip_prefix(':').or(after.is_empty().then_some("80")).ok_or_else(refuse)?)
            }
            None => authority.split_once(':').unwrap_or((authority, "80")),
        };
        let clean = |text: &str| text.bytes().all(|byte| byte.is_ascii_graphic());
        if host.is_empty() || !clean(host) || !clean(path) || host.contains(['@', '/', '?', '#']) {
            return Err(refuse());
        }
        let path = if path.len() > 1 { path } else { "/metrics" };
        Ok(Self { host: host.to_owned(), port: port.parse().map_err(|_| refuse())?, path: path.to_owned() })
    }

    fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "http://{}{}", self.authority(), self.path)
    }
}

/// A page.
#[derive(Debug, Default)]
pub struct Body {
    /// Its bytes, at most 8 MiB.
    pub bytes: Vec<u8>,
    /// Whether there was more.
    pub cut: bool,
}

/// Reads a page.
///
/// # Errors
/// When none came within `patience`, or something else than a page.
pub fn get(url: &Url, patience: Duration) -> Result<Body, Error> {
    let fetch = Fetch { url, began: Instant::now(), patience };
    let mut stream = fetch.connect()?;
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: strato\r\nAccept: text/plain;version=0.0.4\r\nAccept-Encoding: identity\r\nConnection: close\r\n\r\n",
        url.path,
        url.authority()
    );
    stream.write_all(request.as_bytes()).map_err(|e| fetch.failed(e))?;
    let mut read = Vec::new();
    let head = loop {
        if let Some(end) = read.windows(4).position(|four| four == b"\r\n\r\n") {
            break end;
        }
        if read.len() > MOST_HEAD {
            return Err(fetch.answered("a head of more than 64 KiB; this is no metrics page"));
        }
        if fetch.more(&mut stream, &mut read)? == 0 {
            let what =
                if read.is_empty() { "it closed the connection without an answer" } else { "the answer is no HTTP" };
            return Err(fetch.answered(what));
        }
    };
    let body = read.split_off(head + 4);
    let head = Head::parse(&read).ok_or_else(|| fetch.answered("the answer is no HTTP"))?;
    if head.status != 200 {
        let hint = match head.status {
            404 => "; metrics may be switched off or lie elsewhere",
            401 | 403 => "; it wants a key",
            300..=399 => "; name the address that it redirects to",
            _ => "",
        };
        return Err(fetch.answered(&format!("it answered {}{hint}", head.status)));
    }
    fetch.body(&mut stream, body, &head)
}

struct Head {
    status: u16,
    length: Option<usize>,
    chunked: bool,
}

impl Head {
    fn parse(bytes: &[u8]) -> Option<Self> {
        let text = String::from_utf8_lossy(bytes);
        let mut lines = text.split("\r\n");
        let mut status = lines.next()?.split(' ');
        status.next().filter(|version| version.starts_with("HTTP/1."))?;
        let mut head = Self { status: status.next()?.parse().ok()?, length: None, chunked: false };
        for (key, value) in lines.filter_map(|line| line.split_once(':')) {
            match key.trim().to_ascii_lowercase().as_str() {
                "content-length" => head.length = Some(value.trim().parse().ok()?),
                "transfer-encoding" => head.chunked = value.to_ascii_lowercase().contains("chunked"),
                _ => {}
            }
        }
        Some(head)
    }
}

struct Fetch<'u> {
    url: &'u Url,
    began: Instant,
    patience: Duration,
}

impl Fetch<'_> {
    fn answered(&self, what: &str) -> Error {
        Error::Answer { url: self.url.to_string(), what: what.to_owned() }
    }

    fn failed(&self, source: io::Error) -> Error {
        match source.kind() {
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => self.slow(),
            _ => Error::Io { url: self.url.to_string(), source },
        }
    }

    fn slow(&self) -> Error {
        Error::Slow { url: self.url.to_string(), seconds: self.patience.as_secs_f64() }
    }

    fn left(&self) -> Result<Duration, Error> {
        self.patience.checked_sub(self.began.elapsed()).filter(|left| !left.is_zero()).ok_or_else(|| self.slow())
    }

    fn connect(&self) -> Result<TcpStream, Error> {
        let addresses = (self.url.host.as_str(), self.url.port).to_socket_addrs().map_err(|e| self.failed(e))?;
        let mut why = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in addresses {
            match TcpStream::connect_timeout(&address, self.left()?) {
                Ok(stream) => {
                    stream.set_write_timeout(Some(self.left()?)).map_err(|e| self.failed(e))?;
                    return Ok(stream);
                }
                Err(error) => why = error,
            }
        }
        Err(self.failed(why))
    }

    /// Reads some more; how much. A server that sends a byte now and then is slow, too.
    fn more(&self, stream: &mut TcpStream, into: &mut Vec<u8>) -> Result<usize, Error> {
        let mut part = [0; 16 << 10];
        loop {
            stream.set_read_timeout(Some(self.left()?)).map_err(|e| self.failed(e))?;
            match stream.read(&mut part) {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.failed(error)),
                Ok(count) => {
                    into.extend(part.iter().take(count));
                    return Ok(count);
                }
            }
        }
    }

    fn body(&self, stream: &mut TcpStream, mut read: Vec<u8>, head: &Head) -> Result<Body, Error> {
        // Chunks have lines of their own; a page at the limit is cut either way.
        let most = if head.chunked { 2 * MOST_BODY } else { head.length.unwrap_or(MOST_BODY + 1).min(MOST_BODY + 1) };
        let mut whole = false;
        while read.len() < most && !whole {
            whole = head.chunked && read.ends_with(b"\r\n0\r\n\r\n") || read == b"0\r\n\r\n";
            if !whole && self.more(stream, &mut read)? == 0 {
                break;
            }
        }
        if head.chunked {
            read = unchunk(&read).ok_or_else(|| self.answered("the answer ended within a chunk"))?;
        } else if let Some(length) = head.length.filter(|length| read.len() < *length && read.len() <= MOST_BODY) {
            return Err(self.answered(&format!("the answer ended after {} of {length} bytes", read.len())));
        }
        let end = head.length.unwrap_or(MOST_BODY).min(MOST_BODY);
        let cut = read.len() > end || head.length.is_some_and(|length| length > MOST_BODY);
        read.truncate(end);
        Ok(Body { bytes: read, cut })
    }
}

/// The bytes of chunks; `None` when the last one is missing, unless there are too many anyway.
fn unchunk(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    loop {
        let end = rest.windows(2).position(|two| two == b"\r\n")?;
        let line = std::str::from_utf8(rest.get(..end)?).ok()?;
        let size = usize::from_str_radix(line.split(';').next()?.trim(), 16).ok()?;
        rest = rest.get(end + 2..)?;
        if size == 0 {
            return Some(out);
        }
        let Some(chunk) = rest.get(..size) else {
            out.extend_from_slice(rest);
            return (out.len() > MOST_BODY).then_some(out);
        };
        out.extend_from_slice(chunk);
        if out.len() > MOST_BODY {
            return Some(out);
        }
        rest = rest.get(size..)?.strip_prefix(b"\r\n")?;
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn addresses_are_read_as_people_write_them() {
        let of = |text: &str| Url::parse(text).map(|url| url.to_string()).unwrap();
        assert_eq!(of("http://localhost:8000/metrics"), "http://localhost:8000/metrics");
        assert_eq!(of("localhost:8000"), "http://localhost:8000/metrics");
        assert_eq!(of("http://h/prometheus/metrics?x=1"), "http://h:80/prometheus/metrics?x=1");
        assert_eq!(of("http://[::1]:9/"), "http://[::1]:9/metrics");
        for bad in
            ["", "http://", "http://h:x/", "http://h:99999", "http://a b/", "http://[::1", "http://u@h/", "h/\r\nX: y"]
        {
            assert!(Url::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Url::parse("https://h/metrics").unwrap_err().to_string().contains("TLS"));
    }

    #[test]
    fn chunks_are_put_together_and_a_missing_end_is_told() {
        assert_eq!(unchunk(b"3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n").unwrap(), b"abcde");
        for bad in
            [&b"3\r\nab"[..], b"3\r\nabc\r\n", b"zz\r\n", b"", b"3\r\nabcd\r\n0\r\n\r\n", b"ffffffffffffffffff\r\n"]
        {
            assert!(unchunk(bad).is_none(), "{bad:?}");
        }
    }
}
