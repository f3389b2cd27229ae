//! Types that nothing lists: found by content that names them, as it is stored if it is mirrored, and else as it is read
//! for this alone.

use highwater_core::{Failure, FailureKind, Key, StreamName};

use super::{
    Looker, QUICK_RETRIES,
    census::Census,
    json::Node,
    kind_of,
    kinds::{Kind, List},
    listing::is_refusal,
    references::Found,
    reply::is_passing,
    schema,
};
use crate::{Answer, Call, Fetched, Recall, Stored};

/// By how much less is asked for at once after a failure.
const SMALLER: usize = 10;

impl Kind {
    /// The types whose objects name those of this one.
    pub(super) fn named_by(&self) -> &'static [&'static str] {
        match self.list {
            List::Access => &["content_metadata"],
            List::MergeQueries => &["dashboards", "lookml_dashboards", "looks"],
            List::Queries => &["dashboards", "lookml_dashboards", "looks", "scheduled_plans", "merge_queries"],
            _ => &[],
        }
    }
}

impl Looker {
    /// Reads what names the objects of a type, as far as nobody mirrors it.
    pub(super) async fn read_naming(
        &self,
        census: &mut Census,
        kind: &'static Kind,
        call: &Call,
    ) -> Result<(), Failure> {
        for name in kind.named_by() {
            let naming = Kind::find(name).expect("a type of ours");
            if !self.mirrors(name) {
                match self.read_unseen(naming, call).await {
                    Err(failure) if is_refusal(failure.kind) => {
                        census.leave_out(name, Failure::new(FailureKind::Forbidden, failure.message));
                    }
                    read => read?,
                }
            }
            census.has_gaps |= self.known(naming).is_some_and(|known| known.has_gaps);
        }
        Ok(())
    }

    pub(super) fn mirrors(&self, name: &str) -> bool {
        self.streams.iter().any(|spec| spec.name.as_str() == name)
    }

    /// All of a type has to be read: what an object names that cannot be had is not known to be nothing.
    async fn read_unseen(&self, kind: &'static Kind, call: &Call) -> Result<(), Failure> {
        let census = match self.known(kind) {
            Some(census) => census,
            None => self.look(kind, false, call).await?,
        };
        let mut open = self.references().unseen(kind, census.keys().iter());
        let (mut at_once, mut waits) = (self.page, QUICK_RETRIES.iter());
        loop {
            let failed = self.read_some(kind, &census, &open, at_once, call).await?;
            let Some((_, failure)) = failed.last() else { return Ok(()) };
            match waits.next() {
                Some(wait) if is_passing(failure.kind) => self.gateway.clock().sleep(*wait).await,
                _ => return Err(failure.clone()),
            }
            at_once = (at_once / SMALLER).max(1);
            open = failed.into_iter().map(|(key, _)| key).collect();
        }
    }

    /// Those that could not be read, and why not.
    async fn read_some(
        &self,
        kind: &'static Kind,
        census: &Census,
        keys: &[Key],
        at_once: usize,
        call: &Call,
    ) -> Result<Vec<(Key, Failure)>, Failure> {
        let mut failed = Vec::new();
        for keys in keys.chunks(at_once) {
            match self.bodies(kind, census, keys, call).await {
                Ok(answers) => {
                    for Answer { key, fetched, .. } in answers {
                        match fetched {
                            Fetched::Failed(failure) if !is_refusal(failure.kind) => failed.push((key, failure)),
                            Fetched::Skipped => return Err(Failure::new(FailureKind::Internal, "stopped")),
                            _ => {}
                        }
                    }
                }
                Err(failure) => failed.extend(keys.iter().map(|key| (key.clone(), failure.clone()))),
            }
        }
        Ok(failed)
    }
}

impl Recall for Looker {
    fn named_by(&self, stream: &StreamName) -> Vec<StreamName> {
        let names = kind_of(stream).named_by();
        let mirrored = self.streams.iter().filter(|spec| names.contains(&spec.name.as_str()));
        mirrored.map(|spec| spec.name.clone()).collect()
    }

    fn body(&self) -> &'static str {
        schema::BODY
    }

    fn is_unread(&self, stream: &StreamName, key: &Key) -> bool {
        self.references().is_unseen(kind_of(stream), key)
    }

    fn recall(&self, stream: &StreamName, stored: Stored<'_>) {
        let kind = kind_of(stream);
        // Permissions go with what they are for; queries stay.
        let names_nothing = stored.is_gone && kind.list == List::Metadata;
        // A body that cannot be read was damaged in the store, where `verify` tells of it.
        if let Some(node) = Node::read(stored.body).filter(|_| !names_nothing) {
            self.references().note(kind, stored.key, Found::read(kind, &node));
        }
    }
}
