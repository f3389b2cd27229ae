//! What a seed stands for: a mailbox with its habits and faults, what is mirrored of it, and the lives of the processes.

use std::time::Duration;

use highwater_core::{
    RetryPolicy,
    throttle::{InFlight, Rate, Settings, Window},
};
use highwater_engine::{EngineSettings, Entropy, Sizes};
use highwater_sim::GmailPlan;
use highwater_sources::gmail::{MailKind, Quota};

#[derive(Clone)]
pub(super) struct Scene {
    pub(super) seed: u64,
    pub(super) messages: u64,
    pub(super) plan: GmailPlan,
    pub(super) include: Vec<MailKind>,
    pub(super) quota: Quota,
    pub(super) throttle: Settings,
    pub(super) engine: EngineSettings,
    pub(super) lives: Vec<Life>,
    pub(super) max_bytes_day: Option<u64>,
}

/// A process, and what happens to the mailbox once it is gone.
#[derive(Clone, Copy, Debug)]
pub(super) struct Life {
    pub(super) lasts: Duration,
    pub(super) then: Then,
    pub(super) away: Duration,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Then {
    Nothing,
    ForgetHistory,
    EndTokens,
    Punish,
}

impl Then {
    /// The page of the simulator that does it.
    pub(super) fn page(self) -> Option<&'static str> {
        match self {
            Then::Nothing => None,
            Then::ForgetHistory => Some("/_sim/expire_history"),
            Then::EndTokens => Some("/_sim/expire_tokens"),
            Then::Punish => Some("/_sim/penalty?for_s=40"),
        }
    }
}

/// Faults of every kind that heals, often enough to meet each within a few hundred requests.
const FAULTS: &str = r#"
    [rates]
    500 = 0.01
    502 = 0.005
    503 = 0.01
    504 = 0.003
    429 = 0.003
    403-rate = 0.003
    401 = 0.005
    failed-precondition = 0.01
    empty-page = 0.05
    invalid-page-token = 0.02
    raw-missing = 0.005
    raw-truncated = 0.005
    raw-undecodable = 0.005
    html = 0.003
    cut-json = 0.005
    reset = 0.01
    reset-body = 0.005
    truncated = 0.005
    slow = 0.003
    hang = 0.001
"#;

const ODD_PAGES: &str = "
    [rates]
    empty-page = 0.1
    invalid-page-token = 0.05
";

/// Mail that is never to be had.
const BROKEN: &str = r#"
    [[script]]
    share = 0.01
    then = "raw-missing"
    [[script]]
    share = 0.01
    then = "raw-undecodable"
    [[script]]
    share = 0.01
    then = "500"
    [[script]]
    share = 0.01
    then = "failed-precondition"
"#;

const GOOGLES_QUOTA: &str = r#"
    [quota]
    per_minute = 6000
    concurrent = 10
    shapes = ["backend", "modern", "user", "project", "exceeded"]
"#;

const TIGHT_QUOTA: &str = r#"
    [quota]
    per_minute = 2000
    shapes = ["retry-after", "backend"]
    [penalty]
    after = 8
    for_s = 45
    extend_s = 10
"#;

struct Dice(Entropy);

impl Dice {
    fn between(&self, low: u64, high: u64) -> u64 {
        low + self.0.below(high - low + 1)
    }

    fn one_of<T: Copy>(&self, choice: &[T]) -> T {
        choice[self.0.below(choice.len() as u64) as usize]
    }
}

impl Scene {
    pub(super) fn from_seed(seed: u64) -> Self {
        let dice = Dice(Entropy::seeded(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x6d61_696c));
        let quota = dice.one_of(&[Quota::Auto, Quota::New]);
        let sizes = Sizes {
            segment: dice.one_of(&[None, Some(dice.between(60, 400) * 86_400)]),
            job: dice.one_of(&[None, Some(dice.between(2, 30) as usize)]),
            in_flight: 32,
        };
        let lives = (0..dice.between(0, 5)).map(|_| life(&dice)).collect();
        Scene {
            seed,
            messages: dice.one_of(&[dice.between(1, 60), dice.between(60, 250), dice.between(500, 700)]),
            plan: plan(&dice),
            include: dice.one_of(&[&[][..], &[], &[MailKind::Trash], &[MailKind::Spam, MailKind::Drafts]]).to_vec(),
            quota,
            throttle: throttle(quota),
            engine: EngineSettings {
                retry: RetryPolicy { attempts: 7, ..RetryPolicy::default() },
                sizes,
                ..EngineSettings::default()
            },
            lives,
            max_bytes_day: None,
        }
    }

    /// When the mailbox comes to rest.
    pub(super) fn stops_at(&self) -> Duration {
        Duration::from_millis(self.plan.mutations.stop_after_ms.map_or(0, u64::from))
    }
}

/// As the command line does it.
pub(super) fn throttle(quota: Quota) -> Settings {
    let (start, max) = quota.rate();
    let mut settings = Settings::new(Rate::Limited { start, max }, InFlight { start: 4, max: 32 });
    let window = |limit| Window { length: Duration::from_secs(60), limit };
    settings.windows = quota.per_minute().map(window).into_iter().collect();
    settings
}

fn life(dice: &Dice) -> Life {
    let lasts = dice.one_of(&[dice.between(10, 2_000), dice.between(2_000, 60_000), dice.between(60_000, 900_000)]);
    let then = [Then::Nothing, Then::Nothing, Then::ForgetHistory, Then::EndTokens, Then::Punish];
    let away = dice.one_of(&[0, dice.between(1, 60), dice.between(60, 7_200)]);
    Life { lasts: Duration::from_millis(lasts), then: dice.one_of(&then), away: Duration::from_secs(away) }
}

fn plan(dice: &Dice) -> GmailPlan {
    let faults = dice.one_of(&["", ODD_PAGES, FAULTS, FAULTS]);
    let quota = dice.one_of(&["", GOOGLES_QUOTA, TIGHT_QUOTA]);
    let broken = dice.one_of(&["", "", BROKEN]);
    let text = [faults.into(), quota.into(), broken.into(), habits(dice), changes(dice)].concat();
    GmailPlan::parse(&text).unwrap_or_else(|error| panic!("{error} in {text}"))
}

/// How Gmail behaves without anything being wrong.
fn habits(dice: &Dice) -> String {
    let sizes = dice.one_of(&["", "size_kb = 2\n attachments = 0.2\n attachment_kb = 3"]);
    let expires = match dice.between(0, 2) {
        0 => format!("expire_after_s = {}", dice.between(60, 2_000)),
        _ => String::new(),
    };
    format!(
        "
        [mailbox]
        years = {years}
        [shares]
        odd = {odd}
        spam = 0.03
        trash = 0.05
        drafts = 0.03
        unlisted_label = 0.01
        [size]
        {sizes}
        [latency]
        fixed_ms = 20
        jitter_ms = 40
        [list]
        tokens = \"{tokens}\"
        inversions = 0.1
        [search]
        after = \"{after}\"
        date = \"{date}\"
        [history]
        bare = {bare}
        swapped = {swapped}
        {expires}
        [token]
        lifetime_s = {lifetime}
        failures = 0.05
        ",
        years = dice.between(1, 12),
        odd = dice.one_of(&["0.0", "0.1", "0.4"]),
        tokens = dice.one_of(&["key", "offset"]),
        after = dice.one_of(&["inclusive", "exclusive"]),
        date = dice.one_of(&["internal", "internal", "header"]),
        bare = dice.one_of(&["0.0", "0.3"]),
        swapped = dice.one_of(&["0.0", "0.1"]),
        lifetime = dice.one_of(&[300, 3_600]),
    )
}

/// What happens to the mailbox while it is mirrored.
fn changes(dice: &Dice) -> String {
    let every = |slowest: u64| dice.between(500, slowest);
    format!(
        "
        [mutations]
        arrive_every_ms = {}
        delete_every_ms = {}
        label_every_ms = {}
        import_every_ms = {}
        draft_every_ms = {}
        stop_after_ms = {}
        ",
        every(20_000),
        every(30_000),
        every(10_000),
        every(30_000),
        every(60_000),
        dice.between(1, 400) * 1_000,
    )
}
