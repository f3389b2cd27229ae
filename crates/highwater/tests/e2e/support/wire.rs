//! HTTP as small as it can be: requests in, answers out, one thread for each connection.

use std::{
    collections::BTreeMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::Arc,
    thread,
};

use serde_json::Value as Json;

use super::Reply;

/// A request as the test sees it.
pub(crate) struct Ask {
    /// After what all paths begin with.
    pub(crate) path: String,
    words: BTreeMap<String, String>,
}

impl Ask {
    fn read(target: &str, beginning: &str) -> Ask {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let path = path.strip_prefix(beginning).unwrap_or(path);
        let words = query.split('&').filter_map(|word| word.split_once('='));
        Ask { path: decoded(path), words: words.map(|(name, value)| (decoded(name), decoded(value))).collect() }
    }

    /// A word of the query.
    pub(crate) fn word(&self, name: &str) -> Option<&str> {
        self.words.get(name).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str) -> Option<usize> {
        self.word(name).map(|word| word.parse().unwrap())
    }

    /// Of each row what is asked for.
    pub(crate) fn fields(&self, rows: Vec<Json>) -> Vec<Json> {
        let Some(fields) = self.word("fields") else { return rows };
        let names: Vec<&str> = fields.split(',').map(|field| field.split('(').next().unwrap_or(field)).collect();
        rows.into_iter().map(|row| members(row, &names)).collect()
    }
}

fn members(row: Json, names: &[&str]) -> Json {
    match row {
        Json::Object(all) => Json::Object(all.into_iter().filter(|(name, _)| names.contains(&name.as_str())).collect()),
        other => other,
    }
}

fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = parts.next().unwrap_or_default().as_bytes().to_vec();
    for part in parts {
        let (code, rest) = part.split_at(2);
        bytes.push(u8::from_str_radix(code, 16).unwrap());
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).unwrap()
}

type Answer = dyn Fn(&Ask) -> Reply + Send + Sync;

/// The address of a server that answers so. What its paths begin with is left away.
pub(crate) fn listen(beginning: &'static str, answer: impl Fn(&Ask) -> Reply + Send + Sync + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answer: Arc<Answer> = Arc::new(answer);
    // Ends with the process of the test.
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let answer = answer.clone();
            thread::spawn(move || converse(stream, beginning, &*answer));
        }
    });
    url
}

/// Until the client leaves.
fn converse(mut stream: TcpStream, beginning: &str, answer: &Answer) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    loop {
        let target = read_request(&mut reader)?;
        let Reply { status, headers, body } = answer(&Ask::read(&target, beginning));
        let length = body.len();
        let head = format!(
            "HTTP/1.1 {status} X\r\n{headers}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
        );
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).ok()?;
    }
}

/// Path and query; none at the end of the connection.
fn read_request(reader: &mut BufReader<TcpStream>) -> Option<String> {
    let mut first = String::new();
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let (mut line, mut length) = (String::new(), 0);
    while reader.read_line(&mut line).ok()? > 2 {
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        line.clear();
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    first.split(' ').nth(1).map(str::to_owned)
}
