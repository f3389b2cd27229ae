//! An index of words: what it finds, and how it changes.

use std::sync::Arc;

use futures_util::future::{BoxFuture, join};
use highwater_core::{
    Key,
    search::{Field, Query, Words},
};

use super::{
    ITEMS,
    scene::{ALL, Lab, at},
    tables::mail::{ANN, ZOE},
};
use crate::{Collection, Document, ErrorKind, Found, Indexing, Opening, Page, Result, SearchIndex, TextStore};

/// The index of a store; opened again for each caller.
pub type OpenIndex = Box<dyn Fn(Opening) -> BoxFuture<'static, Result<Arc<dyn SearchIndex>>> + Send + Sync>;

/// A fresh store, the texts in it, and its index.
pub struct Library {
    pub lab: Lab,
    pub texts: Arc<dyn TextStore>,
    pub index: OpenIndex,
}

struct Shelf {
    index: Arc<dyn SearchIndex>,
    of: Collection,
}

impl Shelf {
    async fn new(library: &Library) -> Shelf {
        Shelf { index: (library.index)(Opening::Refresh).await.unwrap(), of: Collection::of(&ITEMS) }
    }

    async fn put(&self, documents: Vec<Document>) {
        self.amend(Indexing { put: documents, gone: Vec::new() }).await;
    }

    async fn amend(&self, amendment: Indexing) {
        self.index.amend(&self.of, Arc::new(amendment)).await.unwrap();
    }

    async fn find(&self, query: &str) -> Found {
        self.index.find(&query.parse().unwrap(), std::slice::from_ref(&self.of), ALL).await.unwrap()
    }

    /// The keys of what is found, in order.
    async fn keys(&self, query: &str) -> Vec<i64> {
        let mut keys: Vec<_> = self.find(query).await.hits.iter().filter_map(|hit| hit.key.number()).collect();
        keys.sort_unstable();
        keys
    }

    async fn known(&self) -> Vec<(Key, i64)> {
        self.index.known(&self.of, Page { after: None, limit: ALL }).await.unwrap()
    }
}

fn document(key: i64, check: i64, texts: &[(Field, &str)]) -> Document {
    Document { key: Key::Number(key), row_check: check, at: Some(at(key)), words: Words::of(texts.iter().copied()) }
}

fn text(key: i64, text: &str) -> Document {
    document(key, 1, &[(Field::Text, text)])
}

pub async fn words_phrases_beginnings_and_fields_are_found_alike(library: Library) {
    let shelf = Shelf::new(&library).await;
    let mail = |key, title, author, to, body| {
        document(key, 1, &[(Field::Title, title), (Field::Author, author), (Field::Addressee, to), (Field::Text, body)])
    };
    shelf
        .put(vec![
            mail(1, "Quarterly report", "Ann Lee ann@example.com", "bob@example.org", "The Café opens in March"),
            mail(2, "Report, quarterly", "Bob", "ann@example.com", "Reporting on cafés: 東京タワー"),
            mail(3, "report", "Zoe", "", "of march. Quarterly"),
        ])
        .await;
    for (query, expected) in [
        ("report", &[1, 2, 3][..]),
        ("REPORT café", &[1]),
        ("\"quarterly report\"", &[1]),
        ("\"march quarterly\"", &[3]),
        ("\"report quarterly\"", &[2]),
        ("\"report of\"", &[]),
        ("caf*", &[1, 2]),
        ("\"reporting on caf\"*", &[2]),
        ("report -zoe", &[1, 2]),
        ("report -\"quarterly report\" -of", &[2]),
        ("zoe OR cafe", &[1, 3]),
        ("zoe OR bob march", &[1, 3]),
        ("ann@example.com", &[1, 2]),
        ("from:ann", &[1]),
        ("to:ann", &[2]),
        ("from:\"ann lee\" subject:report", &[1]),
        ("subject:march", &[]),
        ("subject:repo* -from:z*", &[1, 2]),
        ("京タ", &[2]),
        ("東京", &[2]),
        ("京東", &[]),
        ("nothing", &[]),
    ] {
        assert_eq!(shelf.keys(query).await, expected, "{query}");
        assert_eq!(shelf.find(query).await.total, expected.len() as u64, "{query}");
    }
}

pub async fn any_query_is_answered(library: Library) {
    let shelf = Shelf::new(&library).await;
    shelf
        .put(vec![text(1, "near and not or title text rank a b"), text(2, "quote ' \" % _ & | ! <-> : * \\ \u{1}")])
        .await;
    for query in [
        "NEAR(a b)",
        "NEAR(\"a\" \"b\", 2)",
        "a AND b",
        "a NOT c",
        "AND",
        "NOT a",
        "a*b*",
        "* a",
        "a'b",
        "'a'",
        "'; DROP TABLE x; --",
        "a & b | !c <-> d",
        "a:*",
        "a:AB",
        "title:rank",
        "{title}:a",
        "-title:b a",
        "^a",
        "a + b",
        "rank",
        "\"a\"\"b\"",
        "\"a",
        "a\"",
        "\\a \\' \\\\",
        "a\0b",
        "%",
        "a_b",
        "a ::tsquery",
        "$1 ?1",
        "a\u{1}b",
        "\u{202e}a",
    ] {
        if let Ok(query) = query.parse::<Query>() {
            let found = shelf.index.find(&query, std::slice::from_ref(&shelf.of), 5).await;
            assert!(found.is_ok(), "{query:?}: {found:?}");
        }
    }
    assert_eq!(shelf.keys("NEAR").await, [1]);
    assert_eq!(shelf.keys("not").await, [1]);
    assert_eq!(shelf.keys("rank -quote").await, [1]);
    assert_eq!(shelf.known().await.len(), 2);
}

pub async fn what_changed_or_went_is_found_as_it_is_now(library: Library) {
    let shelf = Shelf::new(&library).await;
    shelf.put(vec![text(1, "first"), text(2, "second"), text(3, "third")]).await;
    shelf.amend(Indexing { put: vec![document(2, 7, &[(Field::Text, "other")])], gone: vec![Key::Number(3)] }).await;
    assert_eq!(shelf.keys("second OR third").await, Vec::<i64>::new());
    assert_eq!((shelf.keys("other").await, shelf.keys("first").await), (vec![2], vec![1]));
    assert_eq!(shelf.known().await, [(Key::Number(1), 1), (Key::Number(2), 7)]);
    shelf.put(vec![document(2, 7, &[(Field::Text, "never")])]).await;
    assert_eq!(shelf.keys("never").await, Vec::<i64>::new(), "what is made from the same row is left alone");
    shelf.amend(Indexing { put: vec![text(3, "third again")], gone: vec![Key::Number(9), Key::Number(1)] }).await;
    assert_eq!(shelf.keys("first OR again").await, [3]);
    assert_eq!(shelf.index.count(std::slice::from_ref(&shelf.of)).await.unwrap(), 2);
}

pub async fn what_is_indexed_is_listed_in_the_order_of_its_keys(library: Library) {
    let index = (library.index)(Opening::Refresh).await.unwrap();
    let listed = async |of: &Collection, keys: &[Key]| {
        let put: Vec<_> = keys.iter().map(|key| Document { key: key.clone(), ..text(0, "word") }).collect();
        index.amend(of, Arc::new(Indexing { put, gone: Vec::new() })).await.unwrap();
        let (mut found, mut after) = (Vec::new(), None);
        while let Some((key, _)) = index.known(of, Page { after, limit: 2 }).await.unwrap().first().cloned() {
            found.push(key.clone());
            after = Some(key);
        }
        found
    };
    let numbers = [10, 9, -3, i64::MAX, 100].map(Key::Number);
    let items = Collection::of(&ITEMS);
    assert_eq!(listed(&items, &numbers).await, [-3, 9, 10, 100, i64::MAX].map(Key::Number));
    let names = ["b", "10", "9", "a-1", "B", "é", "007"].map(Key::from);
    let ann = Collection::of(&ANN);
    let found = listed(&ann, &names).await;
    assert_eq!(found, ["007", "10", "9", "B", "a-1", "b", "é"].map(Key::from));
    assert!(found.is_sorted_by(|one, other| ann.order(one, other).is_lt()));
    let zoe = Collection::of(&ZOE);
    assert_eq!(index.known(&zoe, Page { after: None, limit: ALL }).await.unwrap(), []);
    let all = [items, ann, zoe];
    let found = index.find(&"word".parse().unwrap(), &all, ALL).await.unwrap();
    assert_eq!((found.total, index.count(&all).await.unwrap()), (12, 12));
    assert_eq!(found.hits.iter().filter(|hit| hit.collection == 1 && hit.key == Key::from("10")).count(), 1);
    let own = index.find(&"word".parse().unwrap(), &all[1..], ALL).await.unwrap();
    assert!(own.total == 7 && own.hits.iter().all(|hit| hit.collection == 0), "{own:?}");
}

pub async fn a_text_of_any_size_and_script_is_indexed(library: Library) {
    let shelf = Shelf::new(&library).await;
    let long: String = (0..60_000).map(|n| format!("the w{n} ")).collect();
    let wide: String = (0..20_000).map(|n| format!("{}{n} ", "\u{1d400}".repeat(60))).collect();
    let all: String = (1..0x3_0000).filter_map(char::from_u32).collect();
    let noise = "x".repeat(3_000_000);
    shelf.put(vec![text(1, &long), text(2, &wide), text(3, &all), text(4, &noise), text(5, "")]).await;
    assert_eq!(shelf.keys("w5999").await, [1]);
    assert_eq!(shelf.keys("\"the w100 the w101\"").await, [1]);
    // Places of a word beyond those that any store keeps are gaps, and so is what comes after all that is indexed.
    assert_eq!(shelf.keys("\"the w5000\"").await, Vec::<i64>::new());
    assert_eq!(shelf.keys("w59000").await, Vec::<i64>::new());
    assert_eq!(shelf.keys(&format!("{}*", "x".repeat(60))).await, [4]);
    assert_eq!(shelf.known().await.len(), 5);
}

pub async fn hits_are_bounded_and_the_best_and_latest_go_first(library: Library) {
    let shelf = Shelf::new(&library).await;
    let mut documents: Vec<_> = (1..=30).map(|key| text(key, "same words here")).collect();
    documents.push(document(40, 1, &[(Field::Title, "words"), (Field::Text, "in a title")]));
    documents.push(Document { at: None, ..text(50, "same words here") });
    shelf.put(documents).await;
    let of = std::slice::from_ref(&shelf.of);
    let found = shelf.index.find(&"words".parse().unwrap(), of, 4).await.unwrap();
    let keys: Vec<_> = found.hits.iter().filter_map(|hit| hit.key.number()).collect();
    assert_eq!((found.total, keys), (32, vec![40, 30, 29, 28]));
    let all = shelf.index.find(&"same".parse().unwrap(), of, ALL).await.unwrap();
    assert_eq!(all.hits.last().and_then(|hit| hit.key.number()), Some(50), "what has no date comes last");
}

pub async fn two_who_index_the_same_do_it_once(library: Library) {
    let (one, other) = (Shelf::new(&library).await, Shelf::new(&library).await);
    for round in 0..5 {
        let documents = || (0..50).map(|key| document(key, round, &[(Field::Text, "word")])).collect();
        join(one.put(documents()), other.put(documents())).await;
    }
    assert_eq!((one.find("word").await.total, other.known().await.len()), (50, 50));
}

pub async fn an_index_is_begun_anew(library: Library) {
    let shelf = Shelf::new(&library).await;
    shelf.put(vec![text(1, "first")]).await;
    shelf.index.clear().await.unwrap();
    assert_eq!((shelf.keys("first").await, shelf.known().await), (vec![], vec![]));
    shelf.put(vec![text(1, "first")]).await;
    assert_eq!(shelf.keys("first").await, [1]);
}

pub async fn an_index_that_is_not_there_is_not_made_by_who_only_asks(library: Library) {
    for _ in 0..2 {
        let refused = (library.index)(Opening::AsIs).await.err().unwrap();
        assert_eq!(
            (refused.kind, refused.doing.contains("no search index yet")),
            (ErrorKind::CannotOpen, true),
            "{refused}"
        );
    }
    Shelf::new(&library).await.put(vec![text(1, "first")]).await;
    let index = (library.index)(Opening::AsIs).await.unwrap();
    let of = [Collection::of(&ITEMS)];
    assert_eq!(index.find(&"first".parse().unwrap(), &of, 5).await.unwrap().total, 1);
    assert_eq!(index.count(&of).await.unwrap(), 1);
}
