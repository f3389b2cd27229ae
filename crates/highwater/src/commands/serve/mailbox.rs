//! A mailbox at work in a service: its row says how it fares, and nobody else waits for it.

use std::time::Duration;

use highwater_core::Moment;
use highwater_engine::{EngineError, Unheard};

use super::{counters::Counts, watch::Watched};
use crate::{
    mailbox::{Mailbox, Sight},
    out,
};

/// How often its row may have to be written anew.
const LOOK: Duration = Duration::from_secs(1);
/// Whether there are other credentials is looked up as often as the mailbox would be, within these. A refusal is
/// remembered for ten seconds.
const CREDENTIALS_LOOK: Duration = Duration::from_secs(15);
const CREDENTIALS_LOOK_MAX: Duration = Duration::from_secs(60);
/// Some reasons end elsewhere: an API that is switched on again, a key that is put back.
const CREDENTIALS_RETRY: Duration = Duration::from_secs(600);

impl Watched {
    /// Until stopped. A mailbox that cannot be reached is tried again, one that nobody may read any more waits for other
    /// credentials, and neither keeps anybody else from theirs.
    pub(super) async fn serve(&self) -> anyhow::Result<()> {
        let Some(mailbox) = &self.mailbox else { return Ok(self.engine.serve(&self.request).await?) };
        let mailbox = self.patiently(|| mailbox.opened(self.engine.store.clone())).await?;
        self.patiently(|| mailbox.begin()).await?;
        let (mut tried, mut told) = (None, None);
        loop {
            let error = match self.serve_once(&mailbox).await? {
                Ok(()) => return Ok(mailbox.seen(&self.sight(), None).await?),
                Err(error) => error,
            };
            if !matches!(error, EngineError::Account(_) | EngineError::Remote(_)) {
                // The store itself may be what fails, and then nobody can note that there.
                mailbox.failed(&error).await.ok();
                return Err(error.into());
            }
            self.patiently(|| mailbox.failed(&error)).await?;
            self.tell_ended(&error, &mut told);
            tokio::select! {
                biased;
                () = self.engine.world.stop.asked() => return Ok(()),
                mended = self.until_mended(&error, &mailbox, &mut tried) => mended?,
            }
            self.engine.source.gateway().reopen();
            self.counters.begin_anew();
        }
    }

    /// Calls the store until it answers, or somebody asks for an end: a store that is away for a moment while one mailbox
    /// fails ends nobody's work.
    async fn patiently<T, F>(&self, call: impl Fn() -> F) -> highwater_store::Result<T>
    where
        F: Future<Output = highwater_store::Result<T>>,
    {
        loop {
            match call().await {
                Err(error) if error.kind.may_heal() => tokio::select! {
                    biased;
                    () = self.engine.world.stop.asked() => return Err(error),
                    () = self.engine.world.clock.sleep(LOOK) => {}
                },
                answer => return answer,
            }
        }
    }

    async fn serve_once(&self, mailbox: &Mailbox) -> highwater_store::Result<Result<(), EngineError>> {
        tokio::select! {
            biased;
            served = self.engine.serve(&self.request) => Ok(served),
            noted = self.keep_noting(mailbox) => noted.map(Ok),
        }
    }

    /// Returns when it is worth another try.
    async fn until_mended(
        &self,
        error: &EngineError,
        mailbox: &Mailbox,
        tried: &mut Option<String>,
    ) -> highwater_store::Result<()> {
        if let EngineError::Account(_) = error {
            return self.until_changed(mailbox, tried).await;
        }
        self.engine.world.clock.sleep(self.engine.settings.follow_every).await;
        Ok(())
    }

    /// Returns when there are other credentials than those that were tried last, or after a while. They may have been
    /// replaced while the work ended, so that the first are tried once more.
    async fn until_changed(&self, mailbox: &Mailbox, tried: &mut Option<String>) -> highwater_store::Result<()> {
        let every = self.engine.settings.follow_every.clamp(CREDENTIALS_LOOK, CREDENTIALS_LOOK_MAX);
        let clock = &self.engine.world.clock;
        let until = clock.moment() + CREDENTIALS_RETRY;
        loop {
            clock.sleep(every).await;
            match mailbox.credentials().await {
                Ok(Some(_)) if clock.moment() >= until => return Ok(()),
                Ok(Some(sealed)) if tried.as_ref() != Some(&sealed) => {
                    *tried = Some(sealed);
                    return Ok(());
                }
                Err(error) if !error.kind.may_heal() => return Err(error),
                _ => {}
            }
        }
    }

    /// Once, until the mailbox was seen again.
    fn tell_ended(&self, error: &EngineError, told: &mut Option<Option<Moment>>) {
        let heard = self.pulse().last_event;
        if told.replace(heard) != Some(heard) {
            let why = highwater_engine::describe(error);
            out::complain(&format!("{}: not mirrored until that is mended: {why}", self.engine.name));
        }
    }

    /// Notes when the mailbox was last seen as it is, and why it is not if it is not.
    async fn keep_noting(&self, mailbox: &Mailbox) -> highwater_store::Result<()> {
        let mut noted = (self.pulse().last_event, self.sight());
        loop {
            self.engine.world.clock.sleep(LOOK).await;
            let seen = (self.pulse().last_event, self.sight());
            if seen == noted {
                continue;
            }
            let synced_at = (seen.0 != noted.0).then(|| self.engine.world.clock.now());
            match mailbox.seen(&seen.1, synced_at).await {
                Ok(()) => {
                    self.tell(noted.1.unheard.as_ref(), seen.1.unheard.as_ref());
                    noted = seen;
                }
                Err(error) if error.kind.may_heal() => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn sight(&self) -> Sight {
        let Counts { outage, spent_until, .. } = self.counts();
        Sight { unheard: self.pulse().unheard, outage, spent_until }
    }

    /// Once when it begins, and once when it is over.
    fn tell(&self, before: Option<&Unheard>, now: Option<&Unheard>) {
        let name = &self.engine.name;
        match (before, now) {
            (None | Some(Unheard::LeftAlone { .. }), Some(Unheard::Failing { why })) => {
                out::complain(&format!("{name}: its changes cannot be followed: {why}; trying again"));
            }
            (Some(Unheard::Failing { .. }), None) => out::complain(&format!("{name}: its changes are followed again")),
            _ => {}
        }
    }
}
