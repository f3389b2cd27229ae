//! Something is wrong: `status`, the ledger and whoever the configuration names hear of it.

use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    sync::mpsc,
    thread,
    time::Duration,
};

use serde_json::Value as Json;

use super::{PATIENCE, home, limits, plan};
use crate::support::{Service, Sim, Tables};

/// Takes one alert after the other, until the test ends.
fn webhook() -> (String, mpsc::Receiver<Json>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook?secret=s3cret", listener.local_addr().unwrap());
    let (alerts, heard) = mpsc::channel();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream.try_clone().unwrap());
            let mut length = 0;
            let mut line = String::new();
            while reader.read_line(&mut line).unwrap() > 2 {
                if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            stream.write_all(b"HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n").unwrap();
            if alerts.send(serde_json::from_slice(&body).unwrap()).is_err() {
                return;
            }
        }
    });
    (url, heard)
}

#[test]
fn a_dead_letter_is_told_once_to_everybody_who_should_know() {
    let sim = Sim::planned(200, &plan("[[script]]\nid = 50\nthen = \"404\""));
    let (url, heard) = webhook();
    let live = format!("[alerts]\nwebhook = \"{url}\"");
    let home = home(&sim, &limits("rate = \"unlimited\"\nattempts = 2", &live));
    let mut service = Service::start(&home);
    service.wait_for("the dead letter", PATIENCE, |service| service.metric("catchup_dead_letters_total") == Some(1.0));
    let alert = heard.recv_timeout(PATIENCE).expect("nobody was told");
    assert_eq!((alert["condition"].as_str(), alert["state"].as_str()), (Some("dead_letters"), Some("raised")));
    assert_eq!(alert["source"], "hn");
    let database = home.database();
    let noted = "SELECT count(*) FROM ledger WHERE event_type = 'ALERT_RAISED'";
    service.wait_for("the ledger", PATIENCE, |_| database.number(noted) == 1);
    let status = home.run(&["status", "--json"]).exits(0).json();
    assert_eq!(status["sources"][0]["alerts"][0]["condition"], "dead_letters", "{status}");
    let (shown, message) = (home.run(&["status"]).exits(0).out, alert["message"].as_str().unwrap());
    assert!(shown.contains(message), "{shown} does not say {message:?}");
    assert!(heard.recv_timeout(Duration::from_secs(6)).is_err(), "once an hour is enough");
    assert!(!service.err().contains("s3cret"));
}
