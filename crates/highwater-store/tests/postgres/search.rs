//! The suite of the search index, the index of a role that may only read, and of another version.

use std::sync::Arc;

use futures_util::future::BoxFuture;
use highwater_store::{ErrorKind, Opening, PostgresIndex, Result, SearchIndex, suite::Library};

use super::ground::Ground;

fn run(case: fn(Library) -> BoxFuture<'static, ()>) {
    play(|ground| async move {
        case(library(&ground).await).await;
        ground.leave().await;
    });
}

highwater_store::search_suite!(run);

async fn library(ground: &Ground) -> Library {
    let url = ground.url.clone();
    let index = move |opening| -> BoxFuture<'static, Result<Arc<dyn SearchIndex>>> {
        let url = url.clone();
        Box::pin(async move { Ok(Arc::new(PostgresIndex::open(&url, opening).await?) as Arc<dyn SearchIndex>) })
    };
    Library { lab: ground.lab().await, texts: Arc::new(ground.store().await), index: Box::new(index) }
}

fn play<F: Future<Output = ()>>(case: impl FnOnce(Ground) -> F) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { case(Ground::new().await).await });
}

#[test]
fn a_role_that_may_not_make_tables_is_told_so() {
    play(|ground| async {
        ground.store().await;
        let read_only = format!("{}&options=-c%20default_transaction_read_only%3Don", ground.url);
        let refused = PostgresIndex::open(&read_only, Opening::Refresh).await.err().unwrap();
        assert_eq!(refused.kind, ErrorKind::CannotOpen, "{refused}");
        PostgresIndex::open(&ground.url, Opening::Refresh).await.unwrap();
        PostgresIndex::open(&read_only, Opening::AsIs).await.unwrap();
        ground.leave().await;
    });
}

#[test]
fn an_index_of_another_version_is_made_again() {
    play(|ground| async {
        let lab = ground.lab().await;
        PostgresIndex::open(&ground.url, Opening::Refresh).await.unwrap();
        for change in ["UPDATE search_state SET version = 99", "DROP TABLE search_documents"] {
            ground.cells("INSERT INTO search_collections (name) VALUES ('old') RETURNING 1").await;
            ground.beside.batch_execute(change).await.unwrap();
            assert!(PostgresIndex::open(&ground.url, Opening::AsIs).await.is_err());
            PostgresIndex::open(&ground.url, Opening::Refresh).await.unwrap();
            assert_eq!((lab.query)("SELECT count(*) FROM search_collections").await, ["0"]);
        }
        ground.leave().await;
    });
}
