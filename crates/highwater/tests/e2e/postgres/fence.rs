//! Processes that sleep past their leases, as on a machine that was suspended: others take their segments, and what they
//! bring when they wake is refused.

use std::time::Duration;

use crate::support::{FAST, Home, Running, Schema, Session, Signal, Sim, Tables, assert_mirrors, until};

const ITEMS: u32 = 30_000;
const SLEEPERS: usize = 7;
/// Times so many sleepers are 21 sleeps.
const ROUNDS: u32 = 3;
/// Slow enough to outlast the sleeps by far; small jobs, so that everybody has some of the work.
const SLOW: &str = "rate = 300\njob = 1\nsegment = 10";
/// Slow enough to leave work for the next round, though it takes a while until all is taken over.
const TAKING: &str = "rate = 1000\nin_flight = 32";
const PATIENCE: Duration = Duration::from_secs(60);

struct Scene {
    sim: Sim,
    /// Of those who fall asleep, of those who take over, and of the one who ends it.
    slow: Home,
    taking: Home,
    fast: Home,
    session: Session,
    _schema: Schema,
}

#[test]
fn what_a_process_brings_after_its_leases_have_ended_is_refused() {
    let (schema, sim) = (Schema::new(), Sim::planned(ITEMS, "[latency]\nfixed_ms = 20\n"));
    let home = |limits| Home::with_store(&schema.url(), &sim.url(), limits);
    let [slow, taking, fast] = [SLOW, TAKING, FAST].map(home);
    let scene = Scene { slow, taking, fast, session: schema.session(), sim, _schema: schema };
    let sleepers: Vec<_> = (0..SLEEPERS).map(|_| start(&scene.slow)).collect();
    until("the first requests", PATIENCE, || (scene.sim.item_requests() > 0).then_some(()));
    for _ in 0..ROUNDS {
        scene.sleep_past_the_leases(&sleepers);
        scene.session.checked_frontier();
    }
    sleepers.into_iter().for_each(end);
    start(&scene.fast).wait().exits(0);
    scene.assert_right();
}

/// Says on standard error what it lost.
fn start(home: &Home) -> Running {
    let mut command = home.command(&["sync", "hn", "-v"]);
    command.env("HIGHWATER_LEASE_TTL", "2s");
    home.launch(command)
}

fn end(process: Running) {
    process.signal(Signal::Terminate);
    process.wait().exits(143);
}

fn losses(process: &Running) -> usize {
    process.err().matches("is somebody else's now").count()
}

impl Scene {
    fn sleep_past_the_leases(&self, sleepers: &[Running]) {
        let owners: Vec<_> = sleepers.iter().map(|sleeper| until("leases", PATIENCE, || self.owner(sleeper))).collect();
        let losses_before: Vec<_> = sleepers.iter().map(losses).collect();
        sleepers.iter().for_each(|sleeper| sleeper.signal(Signal::Stop));
        let alive = "status = 'in_progress' AND heartbeat_at > clock_timestamp() - interval '2 s'";
        until("the end of the leases", PATIENCE, || (self.segments(alive) == 0).then_some(()));
        let taker = start(&self.taking);
        // Whoever was stopped within a transaction keeps its locks until the server ends that.
        let theirs = format!("status = 'in_progress' AND lease_owner IN ('{}')", owners.join("', '"));
        until("others to take over", PATIENCE, || (self.segments(&theirs) == 0).then_some(()));
        end(taker);
        sleepers.iter().for_each(|sleeper| sleeper.signal(Signal::Continue));
        for (sleeper, before) in sleepers.iter().zip(losses_before) {
            until("a refusal", PATIENCE, || (losses(sleeper) > before).then_some(()));
        }
    }

    /// Its name in the leases, once it has some.
    fn owner(&self, process: &Running) -> Option<String> {
        let name = format!("SELECT worker_id FROM ingest_workers WHERE pid = {}", process.id());
        let held = |owner: &String| self.segments(&format!("status = 'in_progress' AND lease_owner = '{owner}'")) > 0;
        self.session.all(&name).pop().filter(held)
    }

    fn segments(&self, condition: &str) -> i64 {
        self.session.number(&format!("SELECT count(*) FROM ingest_segments WHERE {condition}"))
    }

    fn assert_right(&self) {
        assert_mirrors(&self.session, &self.sim, 1, i64::from(ITEMS));
        assert_eq!(self.session.checked_frontier(), i64::from(ITEMS) + 1);
        let counted = "SELECT stored, (SELECT sum(stored_count)::bigint FROM ingest_segments) FROM ingest_streams";
        assert_eq!(self.session.cells(counted), [[ITEMS, ITEMS]], "nothing was counted twice");
        let twice = "SELECT entity_id FROM ledger WHERE event_type = 'SEGMENT_SEALED' GROUP BY 1 HAVING count(*) > 1";
        assert_eq!(self.session.all::<String>(twice), [""; 0], "no segment is sealed twice");
        self.fast.run(&["verify", "hn"]).exits(0);
    }
}
