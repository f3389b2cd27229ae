//! Following a remote's own record of changes: applied in order, and compared with everything there is when the record
//! does not go back far enough.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use highwater_core::{
    Exception, ExceptionState, Failure, FailureKind, Key, Otherwise, Position, Purpose, Span, Tiding, Timestamp, Value,
};
use highwater_sources::{Census, Changes, Known, Since, Survey};
use highwater_store::{Applied, ExceptionFilter, Followed, LedgerEntry, Page, StreamRow, Tidings};
use serde_json::json;

use crate::{
    asking::ask,
    context::{Engine, StreamContext},
    dispatcher::DrainEnd,
    error::Result,
    planner::{self, Range},
    verify::rows,
};

/// A transaction should be short.
const AT_ONCE: usize = 500;
const PAGE: u32 = 5_000;
/// How often everything is listed because the record moved on meanwhile.
const COMPARISONS: u32 = 5;

/// Done, or why the work ends before it is.
pub(crate) type Step<T> = Result<std::result::Result<T, DrainEnd>>;

/// Why everything is compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// All that was listed is stored: once, to know that nothing was missed.
    Complete,
    /// The record does not go back far enough.
    Expired,
    /// Somebody wishes it.
    Forced,
}

impl Why {
    fn as_str(self) -> &'static str {
        match self {
            Why::Complete => "complete",
            Why::Expired => "expired",
            Why::Forced => "forced",
        }
    }
}

/// Who follows the record of a stream. Any number may at once: what one has applied is nothing to the others.
#[derive(Clone, Copy)]
pub(crate) struct Follower<'a> {
    pub(crate) engine: &'a Engine,
    pub(crate) stream: &'a StreamContext,
    pub(crate) changes: &'a dyn Changes,
}

impl Follower<'_> {
    pub(crate) async fn followed(&self) -> Result<Followed> {
        Ok(self.engine.steady(|| self.engine.store.followed(&self.stream.id)).await?)
    }

    async fn row(&self) -> Result<StreamRow> {
        Ok(self.engine.steady(|| self.engine.store.open_stream(&self.stream.id, self.stream.spec.axis)).await?)
    }

    /// Notes where the record ends, once and before anything is listed: what changes from then on is told by it.
    pub(crate) async fn pin(&self) -> Step<()> {
        if self.followed().await?.upto.is_some() {
            return Ok(Ok(()));
        }
        let mark = match ask(self.engine, async |call| self.changes.mark(call).await).await? {
            Ok(mark) => mark,
            Err(end) => return Ok(Err(end)),
        };
        let (store, stream) = (&self.engine.store, &self.stream.id);
        self.engine.steady(|| store.follow_from(stream, &mark.place, mark.objects)).await?;
        Ok(Ok(()))
    }

    /// Applies what the record tells since the last time; how many keys are to be fetched.
    pub(crate) async fn news(&self) -> Step<u64> {
        let Some(after) = self.followed().await?.upto else { return Ok(Ok(0)) };
        let now = self.engine.now();
        let since = match ask(self.engine, async |call| self.changes.since(&after, now, call).await).await? {
            Ok(since) => since,
            Err(end) => return Ok(Err(end)),
        };
        match since {
            Since::Told { tidings, upto } if tidings.is_empty() && upto == after => Ok(Ok(0)),
            Since::Told { mut tidings, upto } => {
                if self.row().await?.span.start() <= self.stream.spec.origin {
                    tidings.iter_mut().for_each(fetch_unknown);
                }
                let stretch = Stretch { after, upto, tidings, entries: Vec::new(), is_reconciled: false };
                Ok(Ok(apply(self.engine, self.stream, stretch).await?.wanted))
            }
            Since::Expired => self.compare(Why::Expired).await,
        }
    }

    /// Compares all rows with everything the remote has; how many keys are to be fetched. Who else follows the record may
    /// have gone on with it meanwhile: then what was listed is old, and is listed anew.
    pub(crate) async fn compare(&self, why: Why) -> Step<u64> {
        for _ in 0..COMPARISONS {
            match self.compare_once(why).await? {
                Ok(applied) if applied.is_late => {}
                compared => return Ok(compared.map(|applied| applied.wanted)),
            }
        }
        let message =
            "while everything was listed the record moved on, again and again: try when it is followed by nobody else";
        Err(Failure::new(FailureKind::Internal, message).into())
    }

    async fn compare_once(&self, why: Why) -> Step<Applied> {
        let Some(after) = self.followed().await?.upto else { return Ok(Ok(Applied::default())) };
        let from = self.row().await?.span.start();
        let known = match why {
            // Whatever labels the rows have they were just fetched with.
            Why::Complete => Known { from, labels: BTreeMap::new() },
            Why::Expired | Why::Forced => known(self.engine, self.stream, self.changes, from).await?,
        };
        let question = async |call: &_| {
            // The mark first: what changes while everything is listed is told by the record from there on. A record that
            // goes back far enough is followed from where it was.
            let upto = match why {
                Why::Expired => self.changes.mark(call).await?.place,
                Why::Complete | Why::Forced => after.clone(),
            };
            Ok((upto, self.changes.census(&known, call).await?))
        };
        let (upto, census) = match ask(self.engine, question).await? {
            Ok(asked) => asked,
            Err(end) => return Ok(Err(end)),
        };
        let mut tidings = differences(self.engine, self.stream, self.changes, &census).await?;
        // What was left out and is listed no more is asked for: if it is gone, that is known then.
        tidings.extend(self.left_out(|one| !census.keys.contains(&one.key)).await?);
        if why == Why::Forced {
            let audit = rows::audit(self.engine, &self.stream.spec).await?;
            self.rederive(&audit.misderived).await?;
            let damaged: BTreeSet<Key> = audit.damaged.into_keys().filter(|key| census.keys.contains(key)).collect();
            tidings.retain(|tiding| !damaged.contains(&tiding.key));
            tidings.extend(damaged.into_iter().map(|key| Tiding {
                key,
                edits: Vec::new(),
                otherwise: Otherwise::Refetch,
            }));
        }
        let entries = vec![reconciled(self.stream, why, &census, self.engine.now())];
        let stretch = Stretch { after, upto, tidings, entries, is_reconciled: true };
        Ok(Ok(apply(self.engine, self.stream, stretch).await?))
    }

    /// Has fetched what was left out and no longer is; how many keys that are.
    pub(crate) async fn reconsider(&self) -> Result<u64> {
        loop {
            let applied = self.reconsider_once().await?;
            if !applied.is_late {
                return Ok(applied.wanted);
            }
        }
    }

    async fn reconsider_once(&self) -> Result<Applied> {
        let Some(after) = self.followed().await?.upto else { return Ok(Applied::default()) };
        let tidings = self.left_out(|one| !self.changes.leaves_out(&one.reason)).await?;
        if tidings.is_empty() {
            return Ok(Applied::default());
        }
        let upto = after.clone();
        let stretch = Stretch { after, upto, tidings, entries: Vec::new(), is_reconciled: false };
        apply(self.engine, self.stream, stretch).await
    }

    /// By these those are fetched that were left out and are meant.
    async fn left_out(&self, is_meant: impl Fn(&Exception) -> bool) -> Result<Vec<Tiding>> {
        let (engine, stream) = (self.engine, &self.stream.id);
        let filter = ExceptionFilter { state: Some(ExceptionState::Excluded) };
        let mut tidings = Vec::new();
        let mut last = None;
        loop {
            let page = Page { after: last.clone(), limit: PAGE };
            let excluded = engine.steady(|| engine.store.exceptions(stream, filter, page.clone())).await?;
            let Some(one) = excluded.last() else { return Ok(tidings) };
            last = Some(one.key.clone());
            let meant = excluded.into_iter().filter(&is_meant);
            tidings.extend(meant.map(|one| Tiding { key: one.key, edits: Vec::new(), otherwise: Otherwise::Fetch }));
        }
    }

    async fn rederive(&self, groups: &[String]) -> Result<()> {
        let (stream, spec) = (&self.stream.id, &self.stream.spec);
        for some in groups.chunks(100) {
            self.engine.store.rederive(stream, spec.table, some, self.engine.now()).await?;
        }
        Ok(())
    }

    /// Plans what is wanted, from the first object on if nothing was ever planned. The axis ends where it ended when the
    /// record was begun to be followed: later objects are told by that.
    pub(crate) async fn plan(&self, range: &Range) -> Step<Position> {
        let present = self.row().await?.span;
        let begin = match self.engine.source.floor(&self.stream.spec.name) {
            _ if range.sets_origin() => range.resolve(self.stream.spec.origin, present.end()).start(),
            Some(floor) => floor,
            None => present.start(),
        };
        if !present.is_empty() && begin >= present.start() {
            return Ok(Ok(present.end()));
        }
        let survey = match self.survey().await? {
            Ok(survey) => survey,
            Err(end) => return Ok(Err(end)),
        };
        let wanted = if present.is_empty() {
            // Who says where to begin means it, whatever is configured.
            let first = if range.sets_origin() { self.stream.spec.origin } else { survey.first };
            range.resolve(first, survey.head)
        } else {
            Span::new(begin, present.start())
        };
        // Mail may come in with any date, also before all there is.
        planner::lay(self.engine, self.stream, wanted, Purpose::Catchup, Some(survey.oldest)).await?;
        Ok(Ok(if present.is_empty() { survey.head } else { present.end() }))
    }

    async fn survey(&self) -> Step<Survey> {
        let (source, stream) = (&self.engine.source, self.stream);
        let survey = match ask(self.engine, async |call| source.survey(&stream.spec.name, call).await).await? {
            Ok(survey) => survey,
            Err(end) => return Ok(Err(end)),
        };
        if let Some(size) = survey.segment_size.filter(|_| self.engine.settings.sizes.segment.is_none()) {
            stream.cut_by(size);
        }
        Ok(Ok(survey))
    }
}

/// Where everything is to be mirrored, whatever is told of is.
fn fetch_unknown(tiding: &mut Tiding) {
    if tiding.otherwise == Otherwise::Reconsider {
        tiding.otherwise = Otherwise::Fetch;
    }
}

/// A stretch of the record, or what takes its place.
struct Stretch {
    after: String,
    upto: String,
    tidings: Vec<Tiding>,
    entries: Vec<LedgerEntry>,
    is_reconciled: bool,
}

/// Applies a stretch piece by piece; only the last moves the place in the record.
async fn apply(engine: &Engine, stream: &StreamContext, stretch: Stretch) -> Result<Applied> {
    let row = engine.steady(|| engine.store.open_stream(&stream.id, stream.spec.axis)).await?;
    let position = if row.span.is_empty() { Position(0) } else { row.span.end().minus(1) };
    let Stretch { after, upto, tidings, entries, is_reconciled } = stretch;
    let mut applied = Applied::default();
    let mut rest = tidings;
    loop {
        let later = rest.split_off(rest.len().min(AT_ONCE));
        let is_last = later.is_empty();
        let piece = Arc::new(Tidings {
            stream: stream.id.clone(),
            table: stream.spec.table,
            after: after.clone(),
            upto: is_last.then(|| upto.clone()),
            tidings: std::mem::replace(&mut rest, later),
            position,
            entries: if is_last { entries.clone() } else { Vec::new() },
            is_reconciled: is_reconciled && is_last,
            now: engine.now(),
        });
        let done = engine.steady(|| engine.store.apply(piece.clone())).await?;
        applied.edited += done.edited;
        applied.wanted += done.wanted;
        applied.excluded += done.excluded;
        applied.is_late |= done.is_late;
        if is_last || done.is_late {
            return Ok(applied);
        }
    }
}

/// As many as are asked whether they still have a label, at most.
const WEARERS: usize = 5;

/// What a census is to be told of the rows.
pub(crate) async fn known(
    engine: &Engine,
    stream: &StreamContext,
    changes: &dyn Changes,
    from: Position,
) -> Result<Known> {
    let mut labels: BTreeMap<String, Vec<Key>> = BTreeMap::new();
    each_row(engine, stream, changes, |key, values| {
        for label in changes.labels_of(&values) {
            let wearers = labels.entry(label).or_default();
            if wearers.len() < WEARERS {
                wearers.push(key.clone());
            }
        }
    })
    .await?;
    Ok(Known { from, labels })
}

/// All rows, with the columns that are compared.
pub(crate) async fn each_row(
    engine: &Engine,
    stream: &StreamContext,
    changes: &dyn Changes,
    mut visit: impl FnMut(Key, Vec<Value>),
) -> Result<()> {
    let mut after = None;
    loop {
        let page = Page { after: after.clone(), limit: PAGE };
        let rows = engine.steady(|| engine.store.columns(stream.spec.table, changes.compared(), page.clone())).await?;
        let Some((last, _)) = rows.last() else { return Ok(()) };
        after = Some(last.clone());
        rows.into_iter().for_each(|(key, values)| visit(key, values));
    }
}

/// How the rows differ from what the remote has.
async fn differences(
    engine: &Engine,
    stream: &StreamContext,
    changes: &dyn Changes,
    census: &Census,
) -> Result<Vec<Tiding>> {
    let now = engine.now();
    let mut tidings = Vec::new();
    let mut seen: BTreeSet<Key> = BTreeSet::new();
    each_row(engine, stream, changes, |key, values| {
        let edits = changes.compare(census, &key, &values, now);
        if !edits.is_empty() {
            tidings.push(Tiding { key: key.clone(), edits, otherwise: Otherwise::Ignore });
        }
        seen.insert(key);
    })
    .await?;
    for key in census.wanted().filter(|key| !seen.contains(*key)) {
        let otherwise = match census.excluded.get(key) {
            Some(reason) => Otherwise::Exclude { reason },
            None => Otherwise::Fetch,
        };
        tidings.push(Tiding { key: key.clone(), edits: Vec::new(), otherwise });
    }
    Ok(tidings)
}

/// What the ledger says of a comparison.
fn reconciled(stream: &StreamContext, why: Why, census: &Census, at: Timestamp) -> LedgerEntry {
    let excluded = census.wanted().filter(|key| census.excluded.contains_key(*key)).count();
    LedgerEntry {
        at,
        event_type: "RECONCILED",
        source: stream.id.source.clone(),
        entity_type: "stream",
        entity_id: stream.id.stream.to_string(),
        payload: json!({ "why": why.as_str(), "listed": census.wanted().count(), "excluded": excluded }),
        actor: "highwater".into(),
    }
}
