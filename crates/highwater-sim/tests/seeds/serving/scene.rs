//! What a seed stands for: a world that changes for weeks, what goes wrong meanwhile, and when processes live.

use std::{fmt::Write, time::Duration};

use highwater_core::{
    RetryPolicy,
    throttle::{InFlight, Rate, Settings},
};
use highwater_engine::{EngineSettings, Entropy, LeaseTimes, LiveSettings, RescanSettings, Sizes};
use highwater_sim::{FaultPlan, Publicity, StreamOrder};

const MINUTE: u64 = 60;
const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// How long the world of a seed changes.
const WEEKS: u64 = 14 * DAY;
/// How long processes of a seed live altogether, without the last. A service that waits costs as much time to play as
/// one that works, so most of a world goes by while nobody is there.
const LIVED: u64 = HOUR / 3;

#[derive(Clone, Debug)]
pub(crate) struct Scene {
    pub(crate) seed: u64,
    pub(crate) items: u64,
    pub(crate) plan: FaultPlan,
    pub(crate) engine: EngineSettings,
    pub(crate) throttle: Settings,
    pub(crate) live: LiveSettings,
    pub(crate) lives: Vec<Life>,
}

/// One process, and the time after it in which there is none.
#[derive(Clone, Debug)]
pub(crate) struct Life {
    pub(crate) lasts: Duration,
    pub(crate) end: End,
    /// What happens in it, and when, since its beginning.
    pub(crate) acts: Vec<(Duration, Act)>,
    pub(crate) away: Duration,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Killed,
    /// In order.
    Stopped,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Act {
    Order(StreamOrder),
    Down(Duration),
    Grow(u64),
    /// The newest items change, told together.
    Burst(usize),
    /// The item so far below the newest changes.
    Mutate(u64, Publicity),
}

struct Draw(Entropy);

impl Draw {
    fn between(&self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    /// So that short and long times are drawn alike.
    fn seconds(&self, low: u64, high: u64) -> Duration {
        let (low, high) = (low as f64, high as f64);
        Duration::from_millis((1000.0 * low * (high / low).powf(self.0.unit())) as u64)
    }

    fn one_in(&self, n: u64) -> bool {
        self.0.below(n) == 0
    }

    fn one_of<T: Copy>(&self, all: &[T]) -> T {
        all[self.0.below(all.len() as u64) as usize]
    }
}

impl Scene {
    pub(crate) fn from_seed(seed: u64) -> Self {
        let draw = Draw(Entropy::seeded(seed.wrapping_mul(0x9fb2_1c65_1e98_df25) ^ 0x5e17e));
        let apart = draw.between(HOUR, 3 * HOUR);
        let behind = WEEKS / apart + draw.between(0, 40);
        let items = behind + draw.between(120, 250);
        // What may change stays younger than what the shortest pass looks at again.
        let changing = draw.between(12, 36);
        let oldest = (changing + 2) * apart;
        let in_flight = draw.between(2, 16) as u32;
        Scene {
            seed,
            items,
            plan: plan(&draw, apart, behind, changing),
            engine: EngineSettings {
                // A key that is given up holds the frontier until somebody replays it, and nobody does here.
                retry: RetryPolicy { attempts: 20, max: Duration::from_secs(MINUTE), ..RetryPolicy::default() },
                lease: LeaseTimes { ttl: Duration::from_secs(HOUR), beat: Duration::from_secs(600) },
                sizes: Sizes { segment: Some(draw.between(5, 80)), job: Some(draw.between(2, 30) as usize), in_flight },
                ..EngineSettings::default()
            },
            throttle: Settings::new(Rate::Unlimited, InFlight { start: in_flight, max: in_flight }),
            live: live(&draw, oldest),
            lives: lives(&draw, changing),
        }
    }

    /// A world in which nothing goes wrong and nothing changes by itself, and that is looked at again after blindness
    /// only.
    pub(crate) fn calm() -> Self {
        let now = super::stage::EPOCH.as_millis() / 1000;
        let plan = format!(
            "[clock]\nnow = {now}\nseconds_per_id = 3600\n[head]\nbehind = 40\nevery_ms = 3600000\njump_max = 1
             [latency]\nfixed_ms = 20\n[stream]\nkeep_alive_ms = {KEEP_ALIVE}000\n"
        );
        let day = Duration::from_secs(DAY);
        let rescan = RescanSettings { every: 30 * day, window: 2 * day, short_window: day, history: None };
        Scene {
            seed: 7,
            items: 160,
            plan: FaultPlan::parse(&plan).expect("a valid plan"),
            engine: EngineSettings {
                sizes: Sizes { segment: Some(50), job: Some(10), in_flight: 8 },
                ..EngineSettings::default()
            },
            throttle: Settings::new(Rate::Unlimited, InFlight { start: 8, max: 8 }),
            live: LiveSettings { workers: 2, queue: 2, idle_timeout: Duration::from_secs(3 * KEEP_ALIVE), rescan },
            lives: Vec::new(),
        }
    }

    /// No mutation after that.
    pub(crate) fn stops_at(&self) -> Duration {
        self.plan.mutations.stop_after_ms.map_or(Duration::MAX, |ms| Duration::from_millis(u64::from(ms)))
    }
}

fn live(draw: &Draw, oldest: u64) -> LiveSettings {
    let every = draw.seconds(HOUR / 6, HOUR);
    let short_window = Duration::from_secs(oldest) + every;
    let rescan = RescanSettings {
        every,
        window: short_window + Duration::from_secs(draw.between(HOUR, 2 * DAY)),
        short_window,
        history: draw.one_in(4).then(|| Duration::from_secs(draw.between(DAY, 20 * DAY))),
    };
    let idle_timeout = Duration::from_secs(KEEP_ALIVE * 2 + draw.between(1, 60));
    LiveSettings { workers: draw.between(1, 4) as usize, queue: draw.between(2, 24) as usize, idle_timeout, rescan }
}

/// Ten times what the remote does, and so is what the service waits for.
const KEEP_ALIVE: u64 = 300;

fn plan(draw: &Draw, apart: u64, behind: u64, changing: u64) -> FaultPlan {
    let every = draw.between(10, 30) * MINUTE;
    let (unpublished, profiles) = (draw.0.unit() * 0.4, draw.0.unit() * 0.4);
    let mut text = format!(
        "heal_after = 3
        [clock]\nnow = {now}\nseconds_per_id = {apart}
        [head]\nbehind = {behind}\njump_max = 1\nevery_ms = {grows}\nlag_ms = {lag}
        [mutations]\nevery_ms = {every}000\nwindow_ids = {changing}\nunpublished = {unpublished}
        profiles = {profiles}\nstop_after_ms = {WEEKS}000\nupdates_every_ms = {updates}
        [latency]\nfixed_ms = {fixed}\njitter_ms = {jitter}
        [body]\nodd = {odd}\nslow_gap_ms = {gap}\netag = {etag}\n",
        now = super::stage::EPOCH.as_millis() / 1000,
        grows = apart * 1000,
        lag = draw.one_of(&[0, 0, 800, 4_000]),
        updates = draw.one_of(&[1_000, 5_000, 30_000]),
        fixed = draw.between(5, 80),
        jitter = draw.between(0, 1_000),
        odd = draw.one_of(&[0.0, 0.1]),
        gap = draw.between(100, 3_000),
        etag = !draw.one_in(4),
    );
    streams(draw, &mut text);
    faults(draw, &mut text);
    FaultPlan::parse(&text).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn streams(draw: &Draw, text: &mut String) {
    let forms = ["put", "put-path", "put-index", "patch", "put-null"];
    let forms = [draw.one_of(&forms), draw.one_of(&forms), draw.one_of(&forms)];
    write!(text, "[stream]\nkeep_alive_ms = {KEEP_ALIVE}000\nforms = {forms:?}\n").unwrap();
    let mut may = |odds: u64, key: &str, value: String| {
        if draw.one_in(odds) {
            writeln!(text, "{key} = {value}").unwrap();
        }
    };
    may(3, "split", draw.between(1, 40).to_string());
    may(4, "cut_after_events", draw.between(2, 30).to_string());
    may(4, "drop_after_events", draw.between(2, 30).to_string());
    may(4, "silent_after_events", draw.between(1, 30).to_string());
    may(4, "redirect", "'path'".into());
    may(3, "status_first", draw.one_of(&["[503]", "[503, 401, 500]", "[429]"]).into());
}

fn faults(draw: &Draw, text: &mut String) {
    writeln!(text, "[rates]").unwrap();
    for fault in ["500", "503", "401", "404", "html", "reset", "reset-body", "truncated", "cut-json", "slow"] {
        writeln!(text, "{fault} = {}", draw.0.unit() * 0.02).unwrap();
    }
    writeln!(text, "hang = {}", draw.one_of(&[0.0, 0.001])).unwrap();
    writeln!(text, "429 = {}", draw.one_of(&[0.0, 0.004])).unwrap();
    writeln!(text, "[[script]]\nids = [{}, {}]\nthen = 'null'", draw.between(1, 20), draw.between(21, 40)).unwrap();
}

fn lives(draw: &Draw, changing: u64) -> Vec<Life> {
    let mut lives = Vec::new();
    let (mut lived, mut total) = (0, 0);
    while lived < LIVED && total < WEEKS {
        let lasts = draw.seconds(5, HOUR);
        let away = if draw.one_in(3) { draw.seconds(1, 400) } else { draw.seconds(MINUTE, 4 * DAY) };
        lived += lasts.as_secs();
        total += (lasts + away).as_secs();
        let end = if draw.one_in(3) { End::Stopped } else { End::Killed };
        lives.push(Life { lasts, end, acts: acts(draw, lasts, changing), away });
    }
    lives
}

fn acts(draw: &Draw, lasts: Duration, changing: u64) -> Vec<(Duration, Act)> {
    let mut acts = Vec::new();
    for _ in 0..draw.between(0, 6) {
        // A process is busiest when it begins.
        let within = if draw.one_in(2) { Duration::from_secs(30) } else { lasts };
        let at = Duration::from_millis(draw.between(0, within.as_millis() as u64));
        act(draw, at, changing, &mut acts);
    }
    acts.sort_by_key(|(at, _)| *at);
    acts
}

fn act(draw: &Draw, at: Duration, changing: u64, acts: &mut Vec<(Duration, Act)>) {
    match draw.between(0, 8) {
        0 => {
            let orders = [StreamOrder::Drop, StreamOrder::Cut, StreamOrder::Cancel, StreamOrder::AuthRevoked];
            acts.push((at, Act::Order(draw.one_of(&orders))));
        }
        1 => {
            acts.push((at, Act::Order(StreamOrder::Silence)));
            acts.push((at + draw.seconds(1, HOUR), Act::Order(StreamOrder::Restore)));
        }
        2 => acts.push((at, Act::Down(draw.seconds(1, HOUR)))),
        3 => acts.push((at, Act::Grow(draw.between(1, 6)))),
        4 => {
            // Told, and not to be had.
            acts.push((at, Act::Down(draw.seconds(1, MINUTE))));
            flurry(draw, at, changing, acts);
        }
        5 => acts.push((at, Act::Burst(draw.between(1, changing.min(30)) as usize))),
        _ => flurry(draw, at, changing, acts),
    }
}

/// Many changes within seconds, some of the same items again and again.
fn flurry(draw: &Draw, at: Duration, changing: u64, acts: &mut Vec<(Duration, Act)>) {
    let ids = draw.between(1, changing);
    let mut at = at;
    for _ in 0..draw.between(4, 30) {
        let publicity = if draw.one_in(3) { Publicity::Unpublished } else { Publicity::Published };
        acts.push((at, Act::Mutate(draw.0.below(ids), publicity)));
        at += Duration::from_millis(draw.between(1, 1_500));
    }
}
