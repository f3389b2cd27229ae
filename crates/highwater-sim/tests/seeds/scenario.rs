//! What a seed stands for: a remote with its faults, settings of the engine, and moments of crash.

use std::time::Duration;

use highwater_core::{
    RetryPolicy,
    throttle::{InFlight, Rate, Settings},
};
use highwater_engine::{EngineSettings, Entropy, Patience, Sizes};
use highwater_sim::FaultPlan;

#[derive(Clone, Debug)]
pub(crate) struct Scenario {
    pub(crate) seed: u64,
    pub(crate) items: u64,
    pub(crate) plan: FaultPlan,
    pub(crate) engine: EngineSettings,
    pub(crate) throttle: Settings,
    /// How long each process lives before it is killed; the last one lives on.
    pub(crate) lives: Vec<Duration>,
}

/// Faults of every kind, often enough to meet each within a few hundred requests.
const STORMY: &str = r#"
    heal_after = 3
    [body]
    odd = 0.2
    [latency]
    fixed_ms = 20
    jitter_ms = 60
    [quota]
    retry_after_s = 2
    [rates]
    500 = 0.02
    502 = 0.01
    503 = 0.01
    503-retry-after = 0.002
    429 = 0.005
    429-retry-after = 0.003
    401 = 0.005
    404 = 0.005
    null = 0.01
    html = 0.005
    reset = 0.01
    reset-body = 0.005
    truncated = 0.005
    cut-json = 0.005
    wrong-id = 0.003
    slow = 0.003
    hang = 0.001
    [[script]]
    share = 0.004
    then = "null"
    [[script]]
    share = 0.004
    then = "404"
    [[script]]
    share = 0.002
    then = "500"
    [[script]]
    share = 0.002
    then = "wrong-id"
    [[script]]
    share = 0.006
    replies = ["null", "null"]
    [[script]]
    share = 0.006
    replies = ["delayed", "delayed"]
    [[script]]
    share = 0.004
    replies = ["normal", "null"]
    [[script]]
    share = 0.004
    replies = ["delayed", "null", "500", "null"]
    [[script]]
    share = 0.006
    replies = ["null", "null", "delayed", "delayed"]
"#;

const QUOTA: &str = r#"
    [latency]
    fixed_ms = 30
    [quota]
    per_second = 40
    burst = 20
    [[script]]
    share = 0.01
    then = "null"
"#;

const QUOTA_WITH_HEADER: &str = r#"
    [latency]
    fixed_ms = 30
    jitter_ms = 30
    [quota]
    per_second = 50
    burst = 50
    retry_after_s = 3
"#;

const HEAD: &str = r#"
    [latency]
    fixed_ms = 10
    [head]
    lag_ids = 30
    lag_ms = 8000
    behind = 40
    every_ms = 2000
"#;

impl Scenario {
    pub(crate) fn from_seed(seed: u64) -> Self {
        let dice = Entropy::seeded(seed.wrapping_mul(0x2545_f491_4f6c_dd1d));
        let plans = [STORMY, STORMY, STORMY, QUOTA, QUOTA_WITH_HEADER, HEAD];
        let plan = plans[dice.below(plans.len() as u64) as usize];
        let between = |low: u64, high: u64| low + dice.below(high - low + 1);
        let in_flight = between(2, 48) as u32;
        let rates =
            [Rate::Unlimited, Rate::Limited { start: 100.0, max: 1000.0 }, Rate::Limited { start: 20.0, max: 200.0 }];
        let rate = rates[dice.below(3) as usize];
        let sizes = Sizes { segment: Some(between(10, 150)), job: Some(between(3, 40) as usize), in_flight };
        let lives = (0..between(0, 4)).map(|_| Duration::from_millis(between(50, 20_000))).collect();
        Scenario {
            seed,
            items: between(100, 700),
            plan: FaultPlan::parse(plan).expect("the scenarios' own plans are valid"),
            engine: engine_settings(sizes),
            throttle: Settings::new(rate, InFlight { start: in_flight, max: in_flight }),
            lives,
        }
    }

    /// A small calm world, for tests that bring their own trouble.
    pub(crate) fn small() -> Self {
        let plan =
            "[latency]\nfixed_ms = 5\n[[script]]\nid = 20\nthen = 'null'\n[[script]]\nid = 33\nreplies = ['500']\n";
        Scenario {
            seed: 7,
            items: 120,
            plan: FaultPlan::parse(plan).expect("a valid plan"),
            engine: engine_settings(Sizes { segment: Some(25), job: Some(10), in_flight: 8 }),
            throttle: Settings::new(Rate::Unlimited, InFlight { start: 8, max: 8 }),
            lives: Vec::new(),
        }
    }
}

fn engine_settings(sizes: Sizes) -> EngineSettings {
    EngineSettings {
        retry: RetryPolicy { attempts: 6, ..RetryPolicy::default() },
        patience: Patience::default(),
        sizes,
        ..EngineSettings::default()
    }
}
