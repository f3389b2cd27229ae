//! A server that says exactly what a test tells it to, byte for byte, in the runtime of the test.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicUsize, Ordering},
};

use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
    sync::{Notify, Semaphore},
};

pub(crate) enum Step {
    Send(Vec<u8>),
    /// Goes on when the test says so.
    Await(Arc<Notify>),
    /// One byte a second, for ever.
    Drip,
    Hang,
    Close,
    Reset,
}

/// A request as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Seen {
    /// Counted from zero, over all connections.
    pub(crate) number: usize,
    pub(crate) head: String,
    pub(crate) body: Vec<u8>,
}

impl Seen {
    pub(crate) fn path(&self) -> &str {
        self.head.split(' ').nth(1).unwrap()
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }
}

pub(crate) struct Server {
    pub(crate) url: String,
    log: Arc<Log>,
}

struct Log {
    connections: AtomicUsize,
    requests: Mutex<Vec<Seen>>,
    closed: Semaphore,
}

impl Log {
    fn new() -> Self {
        Log { connections: AtomicUsize::new(0), requests: Mutex::default(), closed: Semaphore::new(0) }
    }
}

impl Server {
    pub(crate) async fn start(script: impl Fn(&Seen) -> Vec<Step> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let (log, script) = (Arc::new(Log::new()), Arc::new(script));
        let server = Server { url, log: log.clone() };
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                log.connections.fetch_add(1, Ordering::Relaxed);
                let (log, script) = (log.clone(), script.clone());
                tokio::spawn(async move {
                    serve(stream, &log, script).await;
                    log.closed.add_permits(1);
                });
            }
        });
        server
    }

    /// Answers everything with one and the same bytes.
    pub(crate) async fn replying(answer: impl Into<Vec<u8>>) -> Self {
        let answer = answer.into();
        Server::start(move |_| vec![Step::Send(answer.clone())]).await
    }

    pub(crate) fn connections(&self) -> usize {
        self.log.connections.load(Ordering::Relaxed)
    }

    /// Returns once another connection was seen to end.
    pub(crate) async fn closed(&self) {
        self.log.closed.acquire().await.unwrap().forget();
    }

    pub(crate) fn requests(&self) -> Vec<Seen> {
        self.log.requests.lock().unwrap().clone()
    }
}

async fn serve(mut stream: TcpStream, log: &Log, script: Arc<impl Fn(&Seen) -> Vec<Step>>) {
    while let Some((head, body)) = read_request(&mut stream).await {
        let seen = {
            let mut requests = log.requests.lock().unwrap();
            let seen = Seen { number: requests.len(), head, body };
            requests.push(seen.clone());
            seen
        };
        for step in script(&seen) {
            if !perform(&mut stream, step).await {
                return;
            }
        }
    }
}

/// Says whether the connection goes on.
async fn perform(stream: &mut TcpStream, step: Step) -> bool {
    match step {
        Step::Send(bytes) => return stream.write_all(&bytes).await.is_ok(),
        Step::Await(word) => {
            word.notified().await;
            return true;
        }
        Step::Drip => {
            while stream.write_all(b" ").await.is_ok() {
                tokio::time::sleep(std::time::Duration::from_secs(1)).await;
            }
        }
        Step::Hang => std::future::pending().await,
        Step::Close => {}
        Step::Reset => stream.set_zero_linger().unwrap(),
    }
    false
}

async fn read_request(stream: &mut TcpStream) -> Option<(String, Vec<u8>)> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.ok()?);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |n| n.parse().unwrap());
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await.ok()?;
    Some((head, body))
}

pub(crate) fn ok(body: impl AsRef<[u8]>) -> Vec<u8> {
    with_headers("", body)
}

/// Every header ends its line itself.
pub(crate) fn with_headers(headers: &str, body: impl AsRef<[u8]>) -> Vec<u8> {
    let body = body.as_ref();
    let mut answer = format!("HTTP/1.1 200 OK\r\n{headers}Content-Length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

/// The beginning of an answer that may have no end.
pub(crate) fn chunked(chunk: &str) -> Vec<u8> {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";
    [head.as_bytes(), &chunk_of(chunk)].concat()
}

pub(crate) fn chunk_of(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

pub(crate) fn redirect(location: &str) -> Vec<u8> {
    format!("HTTP/1.1 307 Temporary Redirect\r\nLocation: {location}\r\nContent-Length: 0\r\n\r\n").into_bytes()
}
