//! A mirror that follows a record of changes, against everything the remote has: two full listings, with the record
//! between them to tell what moved meanwhile.

use std::collections::BTreeSet;

use highwater_core::{ExceptionState, Failure, FailureKind, Key};
use highwater_sources::{Call, Census, Changes, Fetched, Since, StreamSpec};
use highwater_store::Page;

use super::{FindingKind, StreamVerdict, again, books::Exceptions, rows};
use crate::{Engine, asking::ask, context::StreamContext, error::Result, follow};

const PAGE: u32 = 1_000;
/// Keys that are asked for at once.
const AT_ONCE: usize = 100;

pub(super) async fn compare(
    engine: &Engine,
    spec: &StreamSpec,
    changes: &dyn Changes,
    exceptions: &Exceptions,
    verdict: &mut StreamVerdict,
) -> Result<()> {
    let audit = rows::audit(engine, spec).await?;
    verdict.stored = audit.rows;
    verdict.blobs = audit.blobs;
    verdict.digest = Some(audit.digest);
    for (key, why) in &audit.damaged {
        verdict.found(key.clone(), FindingKind::Differs, *why);
    }
    for group in &audit.misderived {
        verdict.found(Key::from(group.as_str()), FindingKind::Differs, "its row is not what its members make");
    }
    let source = engine.source.clone();
    let driver = tokio::spawn(async move { source.gateway().drive().await });
    let comparison = Comparison { engine, stream: StreamContext::new(engine, spec), changes, exceptions };
    let is_damaged = |key: &Key| audit.damaged.contains_key(key);
    let compared = comparison.make(verdict, &is_damaged).await;
    driver.abort();
    compared
}

struct Comparison<'a> {
    engine: &'a Engine,
    stream: StreamContext,
    changes: &'a dyn Changes,
    exceptions: &'a Exceptions,
}

struct Listings {
    census: Census,
    /// Changed at the remote since it was last followed.
    moved: BTreeSet<Key>,
}

impl Comparison<'_> {
    async fn make(&self, verdict: &mut StreamVerdict, is_damaged: &impl Fn(&Key) -> bool) -> Result<()> {
        let Listings { census, moved } = self.list(verdict).await?;
        verdict.checked = census.wanted().count() as u64;
        verdict.moved = moved.len() as u64;
        let is_sound = |key: &Key| !moved.contains(key) && !is_damaged(key);
        let stored = self.compare_rows(&census, verdict, &is_sound).await?;
        let mut doubtful = Vec::new();
        for key in census.wanted().filter(|key| !stored.contains(*key) && !moved.contains(*key)) {
            match self.exceptions.get(key) {
                None => verdict.found(key.clone(), FindingKind::Unexplained, "listed, but no row and no exception"),
                Some(ExceptionState::Missing) => doubtful.push(key.clone()),
                Some(ExceptionState::Excluded) if !census.excluded.contains_key(key) => doubtful.push(key.clone()),
                Some(_) => {}
            }
        }
        for some in doubtful.chunks(AT_ONCE) {
            self.ask_for(some, verdict).await?;
        }
        self.compare_ledger(&stored, verdict).await
    }

    async fn list(&self, verdict: &mut StreamVerdict) -> Result<Listings> {
        let (engine, changes) = (self.engine, self.changes);
        // Before anything is listed: a service may go on with the record meanwhile.
        let upto = engine.store.followed(&self.stream.id).await?.upto;
        let known = follow::known(engine, &self.stream, changes, verdict.status.origin).await?;
        let first = asked(engine, async |call| changes.census(&known, call).await).await?;
        let census = asked(engine, async |call| changes.census(&known, call).await).await?;
        let since = match &upto {
            Some(upto) => asked(engine, async |call| changes.since(upto, engine.now(), call).await).await?,
            None => Since::Expired,
        };
        let moved = match since {
            Since::Told { tidings, .. } => tidings.into_iter().map(|tiding| tiding.key).collect(),
            Since::Expired => {
                verdict.book_errors.push("the record of changes does not go back to the last sync: sync first".into());
                BTreeSet::new()
            }
        };
        for key in first.keys.symmetric_difference(&census.keys).filter(|key| !moved.contains(*key)) {
            verdict.found(key.clone(), FindingKind::Unchecked, "two listings do not agree on it");
        }
        Ok(Listings { census, moved })
    }

    /// The keys that have a row.
    async fn compare_rows(
        &self,
        census: &Census,
        verdict: &mut StreamVerdict,
        is_to_be_judged: &impl Fn(&Key) -> bool,
    ) -> Result<BTreeSet<Key>> {
        let now = self.engine.now();
        let mut stored = BTreeSet::new();
        follow::each_row(self.engine, &self.stream, self.changes, |key, values| {
            let edits = self.changes.compare(census, &key, &values, now);
            if !census.keys.contains(&key) && edits.is_empty() {
                verdict.vanished += 1;
            }
            if let Some(edit) = edits.first().filter(|_| is_to_be_judged(&key)) {
                verdict.found(key.clone(), FindingKind::Differs, format!("differs in {}", edit.column()));
            }
            stored.insert(key);
        })
        .await?;
        Ok(stored)
    }

    /// A remote may list what it does not have, and not tell by its listings why something is left out: then there is
    /// nothing to be mirrored.
    async fn ask_for(&self, keys: &[Key], verdict: &mut StreamVerdict) -> Result<()> {
        let (source, name) = (&self.engine.source, &self.stream.spec.name);
        let answers = asked(self.engine, async |call| source.fetch(name, keys, call).await).await?;
        for answer in answers {
            let is_left_out = self.exceptions.get(&answer.key) == Some(&ExceptionState::Excluded);
            match answer.fetched {
                Fetched::Absent => {}
                Fetched::Excluded { .. } if is_left_out => {}
                Fetched::Failed(_) | Fetched::Skipped => {
                    verdict.found(answer.key, FindingKind::Unchecked, "listed, and no usable answer");
                }
                _ if is_left_out => {
                    verdict.found(answer.key, FindingKind::Differs, "left out, but policy would have it now");
                }
                _ => verdict.found(answer.key, FindingKind::Differs, "confirmed missing, but the remote has it"),
            }
        }
        Ok(())
    }

    /// What was stored once is stored, and what is stored was noted when it was.
    async fn compare_ledger(&self, stored: &BTreeSet<Key>, verdict: &mut StreamVerdict) -> Result<()> {
        let noted = self.noted().await?;
        let unnoted = stored.difference(&noted).count();
        if unnoted > 0 {
            verdict.book_errors.push(format!("{unnoted} of the rows are not in the ledger"));
        }
        for key in noted.difference(stored).filter(|key| !self.exceptions.contains_key(*key)) {
            if again::row(self.engine, &self.stream.spec, key).await?.is_none() {
                verdict.found(
                    key.clone(),
                    FindingKind::Unexplained,
                    "stored once, says the ledger, but there is no row",
                );
            }
        }
        Ok(())
    }

    async fn noted(&self) -> Result<BTreeSet<Key>> {
        let mut noted = BTreeSet::new();
        let mut after = None;
        loop {
            let lines = self.engine.store.ledger(&self.engine.name, Page { after, limit: PAGE }).await?;
            let Some(last) = lines.last() else { return Ok(noted) };
            after = Some(last.seq);
            let events = lines.iter().filter(|line| line.event_type == self.changes.storing());
            noted.extend(events.map(|line| self.stream.spec.table.key_of_row(&Key::from(line.entity_id.as_str()))));
        }
    }
}

async fn asked<T>(engine: &Engine, question: impl AsyncFn(&Call) -> Result<T, Failure>) -> Result<T> {
    match ask(engine, question).await? {
        Ok(answer) => Ok(answer),
        Err(_) => {
            let message = "it asks to be left alone for longer than retry_patience";
            Err(Failure::new(FailureKind::Throttled, message).into())
        }
    }
}
