//! Google's own client (firebase-admin for Python) reads the simulator as it reads Firebase: tags, first events, and
//! writes in every form. It is installed from PyPI on first use, into the target folder.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on may panic")]

mod client;

use std::{collections::HashMap, net::SocketAddr, sync::Arc, time::Duration};

use highwater_sim::{FaultPlan, HnSim, Seed, World, server};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use self::client::Client;

/// Only a failing test waits this long.
const PATIENCE: Duration = Duration::from_secs(60);

const PLAN: &str = "head = { behind = 1000, every_ms = 4000000000 }\n\
    stream = { forms = ['put', 'put-path', 'put-index', 'patch', 'put-null'], split = 9, redirect = 'port' }";

/// Enough for every form, twice.
const ROUNDS: usize = 12;

#[tokio::test(flavor = "multi_thread")]
async fn the_vendors_client_follows_every_form_of_write() {
    if std::env::var_os("HIGHWATER_SKIP_CLIENTS").is_some() {
        eprintln!("skipped: HIGHWATER_SKIP_CLIENTS is set");
        return;
    }
    let python = client::install();
    let sim = Arc::new(HnSim::new(World::generated(Seed(4), 5_000), FaultPlan::parse(PLAN).unwrap()));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let shutdown = CancellationToken::new();
    let serving = tokio::spawn(server::serve(listener, Arc::clone(&sim), shutdown.clone()));
    tokio::time::timeout(PATIENCE, follow(Client::start(&python, address), address)).await.expect("the client follows");
    shutdown.cancel();
    serving.await.unwrap().unwrap();
    let report = sim.stats().report();
    assert_eq!([report.not_modified, report.streams_opened, report.by_status[&307]], [1, 2, 2]);
}

async fn follow(mut client: Client, address: SocketAddr) {
    let item = client.next().await;
    assert_eq!(item["value"], page(address, "/v0/item/7.json").await);
    assert_eq!(item["changed_since"], false, "the client understands 304");
    let mut held = HashMap::new();
    until_true(&mut client, &mut held, address).await;
    for round in 0..ROUNDS {
        page(address, &format!("/_sim/burst?count={}", 1 + round * 7 % 10)).await;
        if round % 3 == 1 {
            let author = page(address, &format!("/v0/item/{}.json", 3_000 + round)).await["by"].clone();
            page(address, &format!("/_sim/profile?name={}", author.as_str().unwrap_or("Zozozo"))).await;
        }
        page(address, "/_sim/grow?by=17").await;
        until_true(&mut client, &mut held, address).await;
    }
    client.stop().await;
}

/// Reads events until the client holds what the simulator serves.
async fn until_true(client: &mut Client, held: &mut HashMap<String, Value>, address: SocketAddr) {
    for node in ["/v0/updates", "/v0/maxitem"] {
        let truth = page(address, &format!("{node}.json")).await;
        while held.get(node) != Some(&truth) {
            let event = client.next().await;
            held.insert(event["node"].as_str().unwrap().to_owned(), event["value"].clone());
        }
    }
}

async fn page(address: SocketAddr, target: &str) -> Value {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {target} HTTP/1.1\r\nHost: sim\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).await.unwrap();
    let (_, body) = text.split_once("\r\n\r\n").unwrap();
    serde_json::from_str(body).unwrap_or_else(|_| json!(body))
}
