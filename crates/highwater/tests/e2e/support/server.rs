//! A remote written by hand, for what the simulator does not do: the test decides every answer, and sees every request
//! with its times.

use std::{
    io::{BufRead, BufReader, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

use super::{clock::now, until};

#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: &'static str,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn ok(body: impl Into<String>) -> Reply {
        Reply { status: 200, headers: "", body: body.into() }
    }

    /// The connection is closed instead.
    pub(crate) fn hang_up() -> Reply {
        Reply::status(NONE)
    }

    pub(crate) fn status(status: u16) -> Reply {
        Reply { status, headers: "", body: "{\"error\":\"refused\"}".into() }
    }
}

/// The status of a request that was hung up on.
const NONE: u16 = 0;

/// An ordinary item.
pub(crate) fn item(id: i64) -> String {
    let time = 1_160_418_111 + id;
    format!("{{\"by\":\"ann\",\"id\":{id},\"text\":\"comment {id}\",\"time\":{time},\"type\":\"comment\"}}")
}

/// A request as the server saw it.
#[derive(Clone, Debug)]
pub(crate) struct Hit {
    /// None for `maxitem`.
    pub(crate) item: Option<i64>,
    pub(crate) arrived: Instant,
    /// Just before the answer left.
    pub(crate) answered: Option<Instant>,
    pub(crate) status: u16,
}

type Hits = Arc<Mutex<Vec<Hit>>>;
type Answer = dyn Fn(Option<i64>, usize) -> Option<Reply> + Send + Sync;

pub(crate) struct Server {
    address: String,
    hits: Hits,
}

impl Server {
    /// `answer` is given the item asked for and how many requests came before; none is no answer, ever.
    pub(crate) fn start(answer: impl Fn(Option<i64>, usize) -> Option<Reply> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let hits = Hits::default();
        let (answer, seen): (Arc<Answer>, _) = (Arc::new(answer), hits.clone());
        // Ends with the process of the test.
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (answer, seen) = (answer.clone(), seen.clone());
                thread::spawn(move || serve(stream, &*answer, &seen));
            }
        });
        Server { address, hits }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn hits(&self) -> Vec<Hit> {
        self.hits.lock().unwrap().clone()
    }

    pub(crate) fn items_asked(&self) -> usize {
        self.hits().iter().filter(|hit| hit.item.is_some()).count()
    }

    pub(crate) fn wait_for_items(&self, count: usize) {
        let patience = Duration::from_secs(30);
        until("requests", patience, || (self.items_asked() >= count).then_some(()));
    }
}

/// Until the client leaves.
fn serve(stream: TcpStream, answer: &Answer, hits: &Hits) -> Option<()> {
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    let mut stream = stream;
    loop {
        let item = read_request(&mut reader)?;
        let before = {
            let mut hits = hits.lock().unwrap();
            hits.push(Hit { item, arrived: now(), answered: None, status: NONE });
            hits.len() - 1
        };
        let Some(Reply { status, headers, body }) = answer(item, before) else {
            // Reading returns when the client has given up.
            return read_request(&mut reader).map(drop);
        };
        {
            let mut hits = hits.lock().unwrap();
            (hits[before].answered, hits[before].status) = (Some(now()), status);
        }
        if status == NONE {
            return None;
        }
        let length = body.len();
        let head = format!("HTTP/1.1 {status} X\r\n{headers}Content-Length: {length}\r\n\r\n");
        stream.write_all(&[head.as_bytes(), body.as_bytes()].concat()).ok()?;
    }
}

/// The item asked for, if one is; none at the end of the connection.
fn read_request(reader: &mut impl BufRead) -> Option<Option<i64>> {
    let mut first = String::new();
    if reader.read_line(&mut first).ok()? == 0 {
        return None;
    }
    let mut line = String::new();
    while line != "\r\n" {
        line.clear();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
    }
    let target = first.split(' ').nth(1)?;
    let id = target.strip_prefix("/v0/item/").and_then(|rest| rest.strip_suffix(".json"));
    Some(id.map(|id| id.parse().unwrap()))
}
