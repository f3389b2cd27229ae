//! One account, two processes: together they are no faster than one may be, and what one is told both heed.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serde_json::Value as Json;

use crate::support::{Home, Reply, Running, Schema, Server, Signal, item, until};

const RATE: u32 = 40;
/// Small jobs, so that each process leaves some of the work to the other.
const SMALL: &str = "job = 1\nsegment = 10";
const PATIENCE: Duration = Duration::from_secs(30);

struct Pair {
    server: Server,
    home: Home,
    both: [Running; 2],
    _schema: Schema,
}

impl Pair {
    /// Two processes, each with about half of the rate. The next item is refused when `refuse` says so.
    fn start(rate: u32, refuse: Arc<AtomicBool>) -> Pair {
        let server = Server::start(move |asked, _| match asked {
            Some(_) if refuse.swap(false, Ordering::Relaxed) => {
                Some(Reply { headers: "Retry-After: 5\r\n", ..Reply::status(429) })
            }
            _ => Some(Reply::ok(asked.map_or_else(|| "20000".to_owned(), item))),
        });
        let schema = Schema::new();
        let home = Home::with_store(&schema.url(), &server.url(), &format!("rate = {rate}\n{SMALL}"));
        let both = [(), ()].map(|()| home.start(&["sync", "hn"]));
        let pair = Pair { server, home, both, _schema: schema };
        until("two with half each", PATIENCE, || pair.shares().iter().all(|share| *share > 0.4).then_some(()));
        pair
    }

    fn workers(&self) -> Vec<Json> {
        let done = self.home.run(&["status", "--json"]);
        // Before the first of them has made the store there is nothing to show.
        let workers = done.status.success().then(|| done.json()["sources"][0]["workers"].clone());
        workers.as_ref().and_then(Json::as_array).cloned().unwrap_or_default()
    }

    /// Zero for one that has no work yet.
    fn shares(&self) -> Vec<f64> {
        let workers = self.workers();
        let of = |running: &Running| {
            let mine = workers.iter().find(|worker| worker["pid"] == running.id())?;
            mine["share"].as_f64().filter(|_| mine["segments"].as_u64() > Some(0))
        };
        self.both.iter().map(|running| of(running).unwrap_or_default()).collect()
    }

    fn end(self) -> Server {
        for running in self.both {
            running.signal(Signal::Terminate);
            running.wait().exits(143);
        }
        self.server
    }
}

#[test]
fn two_processes_together_keep_to_the_rate_of_one() {
    let pair = Pair::start(RATE, Arc::default());
    let workers = pair.workers();
    assert_eq!(workers.len(), 2, "{workers:?}");
    for worker in &workers {
        assert!(worker["host"].as_str().is_some_and(|host| !host.is_empty()), "{worker}");
        assert!(worker["since"].as_str().is_some_and(|since| since.ends_with(" UTC")), "{worker}");
    }
    let shares: f64 = pair.shares().iter().sum();
    assert!(shares <= 1.0 + 1e-6, "{shares}");
    pair.server.wait_for_items(pair.server.items_asked() + 6 * RATE as usize);
    let hits = pair.end().hits();
    let lasted = hits[hits.len() - 1].arrived.duration_since(hits[0].arrived).as_secs_f64();
    let most = f64::from(RATE) * lasted * 1.1 + f64::from(RATE) / 2.0;
    println!("{} requests in {lasted:.1} s", hits.len());
    assert!((hits.len() as f64) < most, "{} requests in {lasted:.1} s at {RATE} a second", hits.len());
}

#[test]
fn what_one_process_is_told_to_wait_for_both_wait_for() {
    let refuse = Arc::new(AtomicBool::new(false));
    let pair = Pair::start(200, refuse.clone());
    refuse.store(true, Ordering::Relaxed);
    let refused = until("a refusal", PATIENCE, || pair.server.hits().into_iter().find(|hit| hit.status == 429));
    let before = pair.server.items_asked();
    pair.server.wait_for_items(before + 400);
    let told = refused.answered.unwrap();
    let (heard, over) = (told + Duration::from_secs(1), told + Duration::from_secs(5));
    let hits = pair.end().hits();
    let within = hits.iter().filter(|hit| hit.arrived > heard && hit.arrived < over).count();
    let last =
        hits.iter().filter(|hit| hit.arrived < over).map(|hit| hit.arrived.saturating_duration_since(told)).max();
    println!("the last request came {last:?} after the gate was closed");
    assert_eq!(within, 0, "requests came while the gate was closed");
}
