//! The live part of a store, for layers: what there is to pass on, in one place.

/// Hands every method to a macro that says what a layer does with it.
macro_rules! live_methods {
    ($pass_on:ident) => {
        $pass_on! {
            fn commit_live<'a>(&'a self, commit: Arc<highwater_store::LiveCommit>) -> highwater_store::LiveCommitted;
            fn tags<'a>(&'a self, table: &'static Table, keys: &'a KeySet) -> std::collections::BTreeMap<Key, String>;
            fn take_role<'a>(&'a self, ask: &'a highwater_store::RoleAsk) -> bool;
            fn drop_role<'a>(&'a self, ask: &'a highwater_store::RoleAsk) -> ();
            fn live_state<'a>(&'a self, stream: &'a StreamId) -> highwater_store::LiveState;
            fn heard<'a>(&'a self, heard: &'a highwater_store::Heard) -> ();
            fn told<'a>(&'a self, stream: &'a StreamId) -> Vec<Key>;
            fn open_window<'a>(&'a self, window: &'a highwater_store::NewWindow) -> highwater_core::WindowId;
            fn end_window<'a>(&'a self, end: &'a highwater_store::EndWindow) -> ();
            fn names_in<'a>(&'a self, names: &'a highwater_store::NamesIn) -> Vec<String>;
            fn names_done<'a>(&'a self, window: highwater_core::WindowId, now: Timestamp) -> ();
            fn begin_rescan<'a>(&'a self, plan: &'a highwater_store::RescanPlan) -> highwater_core::RescanId;
            fn settle_live<'a>(&'a self, stream: &'a StreamId, now: Timestamp) -> highwater_store::LiveSettled;
            fn compact<'a>(&'a self, stream: &'a StreamId, segment_size: u64) -> u64;
            fn collect_names<'a>(
                &'a self,
                collect: &'a highwater_store::CollectNames
            ) -> Option<highwater_store::Collected>;
            fn note_names<'a>(&'a self, stream: &'a StreamId, names: &'a [String]) -> ();
            fn listed<'a>(&'a self, stream: &'a StreamId, span: highwater_core::Span) -> Vec<Key>;
            fn listed_at<'a>(&'a self, stream: &'a StreamId, name: &'a Key) -> Option<Position>;
            fn listed_end<'a>(&'a self, stream: &'a StreamId) -> Position;
            fn ages<'a>(&'a self, stream: &'a StreamId) -> highwater_core::AgeCounts;
            fn note_alert<'a>(&'a self, alert: &'a highwater_store::AlertNote) -> ();
            fn open_alerts<'a>(&'a self, source: &'a SourceName) -> Vec<highwater_store::AlertRow>;
            fn told_alerts<'a>(&'a self, source: &'a SourceName) -> Vec<(String, highwater_core::Timestamp)>;
            fn sizes<'a>(&'a self) -> highwater_store::StoreSizes;
            fn first_run_at<'a>(&'a self, source: &'a SourceName, command: Option<&'static str>) -> Option<Timestamp>;
        }
    };
}

pub(crate) use live_methods;
