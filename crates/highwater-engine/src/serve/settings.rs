//! What an operator may tune about a mirror that stays current.

use std::time::Duration;

#[derive(Clone, Copy, Debug)]
pub struct LiveSettings {
    /// Workers that fetch what the remote tells of.
    pub workers: usize,
    /// Keys told and not yet stored.
    pub queue: usize,
    /// A feed without an event for this long is dead.
    pub idle_timeout: Duration,
    pub rescan: RescanSettings,
}

#[derive(Clone, Copy, Debug)]
pub struct RescanSettings {
    pub every: Duration,
    /// Objects younger than this may still change.
    pub window: Duration,
    /// As `window`, after having been blind for less than five minutes.
    pub short_window: Duration,
    /// In which time everything is looked at once, however old; never without.
    pub history: Option<Duration>,
}

pub(super) const SHORT_BLINDNESS: Duration = Duration::from_secs(300);

impl Default for LiveSettings {
    fn default() -> Self {
        LiveSettings {
            workers: 8,
            queue: 4096,
            idle_timeout: Duration::from_secs(60),
            rescan: RescanSettings::default(),
        }
    }
}

impl Default for RescanSettings {
    fn default() -> Self {
        const DAY: Duration = Duration::from_secs(86_400);
        RescanSettings { every: Duration::from_secs(6 * 3600), window: 14 * DAY, short_window: 2 * DAY, history: None }
    }
}
