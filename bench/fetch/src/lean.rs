//! An upper bound: HTTP/1.1 on bare sockets, one connection for each request in flight, no deadlines, no limits, no
//! retries. It understands answers with a `Content-Length` and nothing else.

use anyhow::{Context, bail, ensure};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
};

use crate::work::Work;

/// Larger than nearly all items, so that one read gets the whole answer.
const READ_SIZE: usize = 16 * 1024;

pub(crate) async fn fetch(base_url: &str, work: &Work) -> anyhow::Result<()> {
    let host = base_url.strip_prefix("http://").context("the lean client speaks plain http only")?;
    let host = host.trim_end_matches('/').to_owned();
    work.share(|work| fetch_items(host.clone(), work)).await
}

async fn fetch_items(host: String, work: Work) -> anyhow::Result<()> {
    let mut connection = Connection::open(&host).await?;
    while let Some(id) = work.next_id() {
        connection.item(&host, id).await.with_context(|| format!("item {id}"))?;
    }
    Ok(())
}

struct Connection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Connection {
    async fn open(host: &str) -> anyhow::Result<Self> {
        let stream = TcpStream::connect(host).await?;
        stream.set_nodelay(true)?;
        Ok(Connection { stream, buffer: Vec::with_capacity(READ_SIZE) })
    }

    async fn item(&mut self, host: &str, id: u64) -> anyhow::Result<()> {
        let request = format!("GET /v0/item/{id}.json HTTP/1.1\r\nHost: {host}\r\n\r\n");
        self.stream.write_all(request.as_bytes()).await?;
        self.buffer.clear();
        let length = loop {
            self.read_more().await?;
            if let Some(length) = answer_length(&self.buffer)? {
                break length;
            }
        };
        while self.buffer.len() < length {
            self.read_more().await?;
        }
        ensure!(self.buffer.len() == length, "more bytes than the answer has");
        Ok(())
    }

    async fn read_more(&mut self) -> anyhow::Result<()> {
        self.buffer.reserve(READ_SIZE);
        ensure!(self.stream.read_buf(&mut self.buffer).await? > 0, "the server closed the connection");
        Ok(())
    }
}

/// Of head and body together; none while the head is not complete.
fn answer_length(bytes: &[u8]) -> anyhow::Result<Option<usize>> {
    let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") else { return Ok(None) };
    let head = std::str::from_utf8(&bytes[..end])?;
    let mut lines = head.split("\r\n");
    let status = lines.next().unwrap_or_default();
    ensure!(status.starts_with("HTTP/1.1 200"), "answered `{status}`");
    for (name, value) in lines.filter_map(|line| line.split_once(':')) {
        if name.eq_ignore_ascii_case("content-length") {
            return Ok(Some(end + 4 + value.trim().parse::<usize>()?));
        }
    }
    bail!("an answer without a length")
}

#[cfg(test)]
mod tests {
    use super::answer_length;

    #[test]
    fn an_answer_is_as_long_as_its_head_and_what_that_announces() {
        let answer = b"HTTP/1.1 200 OK\r\ncontent-Length: 5\r\n\r\nhel";
        assert_eq!(answer_length(answer).unwrap(), Some(answer.len() + 2));
        assert_eq!(answer_length(&answer[..20]).unwrap(), None);
    }

    #[test]
    fn an_answer_of_another_kind_is_an_error() {
        assert!(answer_length(b"HTTP/1.1 503 No\r\ncontent-length: 0\r\n\r\n").is_err());
        assert!(answer_length(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").is_err());
    }
}
