//! The part of a store that follows a record of changes, for layers: what there is to pass on, in one place.

/// Hands every method to a macro that says what a layer does with it.
macro_rules! follow_methods {
    ($pass_on:ident) => {
        $pass_on! {
            fn followed<'a>(&'a self, stream: &'a StreamId) -> highwater_store::Followed;
            fn follow_from<'a>(&'a self, stream: &'a StreamId, from: &'a str, expected: Option<u64>) -> ();
            fn apply<'a>(&'a self, tidings: Arc<highwater_store::Tidings>) -> highwater_store::Applied;
            fn columns<'a>(
                &'a self,
                table: &'static Table,
                columns: &'a [&'static str],
                page: Page<Key>
            ) -> Vec<(Key, Vec<highwater_core::Value>)>;
            fn side_rows<'a>(
                &'a self,
                side: &'static highwater_core::schema::SideTable,
                of: &'static highwater_core::schema::Table,
                page: highwater_store::Page<String>
            ) -> Vec<Vec<highwater_core::Value>>;
            fn misderived<'a>(
                &'a self,
                table: &'static Table,
                page: highwater_store::Page<String>
            ) -> highwater_store::Misderived;
            fn rederive<'a>(
                &'a self,
                stream: &'a StreamId,
                table: &'static Table,
                groups: &'a [String],
                now: highwater_core::Timestamp
            ) -> ();
            fn cut<'a>(&'a self, lease: &'a Lease, at: Position) -> ();
        }
    };
}

pub(crate) use follow_methods;
