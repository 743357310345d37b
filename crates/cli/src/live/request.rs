//! What a client asks: the head of an HTTP request, whose body nobody reads.

/// So many headers have a browser's request and some of a proxy.
const HEADERS: usize = 64;

/// A request.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// `GET`.
    pub method: String,
    /// `/word/data?have=3`.
    pub path: String,
    host: Option<String>,
    origin: Option<String>,
    site: Option<String>,
}

/// What some bytes are.
#[derive(Debug, PartialEq, Eq)]
pub enum Parsed {
    /// The beginning of a request.
    Part,
    /// A request.
    Whole(Request),
    /// None.
    Bad,
}

/// Reads a request's head.
pub fn parse(bytes: &[u8]) -> Parsed {
    let mut headers = [httparse::EMPTY_HEADER; HEADERS];
    let mut read = httparse::Request::new(&mut headers);
    match read.parse(bytes) {
        Ok(httparse::Status::Partial) => return Parsed::Part,
        Err(_) => return Parsed::Bad,
        Ok(httparse::Status::Complete(_)) => {}
    }
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let header = |name: &str| {
        let found = read.headers.iter().find(|it| it.name.eq_ignore_ascii_case(name));
        found.map(|it| text(it.value))
    };
    Parsed::Whole(Request {
        method: read.method.unwrap_or_default().to_owned(),
        path: read.path.unwrap_or_default().to_owned(),
        host: header("Host"),
        origin: header("Origin"),
        site: header("Sec-Fetch-Site"),
    })
}

impl Request {
    /// What it asks for below the word; `None` unless it has the word, is for this address, and
    /// comes from no other page.
    pub fn below(&self, token: &str, port: u16) -> Option<&str> {
        let own = [format!("127.0.0.1:{port}"), format!("localhost:{port}")];
        let host = self.host.as_ref().is_some_and(|host| own.contains(host));
        let is_own = |origin: &String| own.iter().any(|it| *origin == format!("http://{it}"));
        let origin = self.origin.as_ref().is_none_or(is_own);
        let site = self.site.as_ref().is_none_or(|site| site == "same-origin" || site == "none");
        let path = self.path.strip_prefix(&format!("/{token}/"))?;
        (host && origin && site).then_some(path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Parsed {
        parse(text.as_bytes())
    }

    #[test]
    fn a_head_is_read_when_it_is_whole() {
        assert_eq!(parsed("GET /x HTTP/1.1\r\nHost: a"), Parsed::Part);
        let Parsed::Whole(read) = parsed("GET /x HTTP/1.1\r\nhOsT: a:1\r\nX: y\r\n\r\nbody") else {
            panic!()
        };
        assert_eq!((read.method.as_str(), read.path.as_str()), ("GET", "/x"));
        assert_eq!(read.host.as_deref(), Some("a:1"));
        assert_eq!(parsed("no request at all\r\n\r\n"), Parsed::Bad);
        let many = "X: y\r\n".repeat(HEADERS + 1);
        assert_eq!(parsed(&format!("GET / HTTP/1.1\r\n{many}\r\n")), Parsed::Bad);
    }

    #[test]
    fn whoever_lacks_the_word_or_comes_from_elsewhere_gets_nothing() {
        let below = |path: &str, headers: &str| {
            let text = format!("GET {path} HTTP/1.1\r\n{headers}\r\n\r\n");
            let Parsed::Whole(request) = parsed(&text) else { panic!("{text}") };
            request.below("word", 80).map(str::to_owned)
        };
        let own = "Host: localhost:80";
        assert_eq!(below("/word/", own).as_deref(), Some(""));
        assert_eq!(
            below("/word/data", &format!("{own}\r\nSec-Fetch-Site: none")).as_deref(),
            Some("data")
        );
        assert_eq!(below("/other/", own), None);
        assert_eq!(below("/word", own), None);
        assert_eq!(below("/word/", "X: y"), None);
        assert_eq!(below("/word/", "Host: evil.example"), None);
        assert_eq!(below("/word/", &format!("{own}\r\nOrigin: http://evil.example")), None);
        assert_eq!(below("/word/", &format!("{own}\r\nSec-Fetch-Site: cross-site")), None);
    }
}
