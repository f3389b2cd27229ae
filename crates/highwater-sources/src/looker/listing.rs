//! Lists: in one answer where there is such a one, else page by page until an empty one.

use std::{
    collections::{BTreeMap, HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt, stream};
use highwater_core::{Failure, FailureKind, Key};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    Looker,
    census::{Census, Order, Section, Spot, order_of, parting, sorted},
    group::Group,
    json::Node,
    kinds::{Kind, List, MODELS, Which},
    reply::malformed,
};
use crate::{Call, escape::escaped};

/// Ids are short: a thousand of them is a small answer.
const IDS_PAGE: usize = 1000;
/// A list that changes at every look is not going to be found in one state.
const WALKS_MAX: u32 = 3;
/// By which content metadata is found.
const MEMBERS: &str = "id,parent_id,content_metadata_id,folder_id,folder(id)";
/// Lists asked for at once.
const LISTS_AT_ONCE: usize = 4;

/// The few members of listed objects by which others are found.
#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    folder_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    folder: Option<&'a RawValue>,
    #[serde(borrow, default)]
    parent_id: Option<&'a RawValue>,
    #[serde(borrow, default)]
    content_metadata_id: Option<&'a RawValue>,
}

fn word(raw: Option<&RawValue>) -> Option<String> {
    Node::read(raw?.get())?.word().map(|word| word.into_owned()).filter(|word| !word.is_empty())
}

impl Entry<'_> {
    /// None if it has no name.
    fn read(&self) -> Option<Listed> {
        let inner = || Node::read(self.folder?.get())?.member("id")?.word().map(|word| word.into_owned());
        Some(Listed {
            key: Key::from(word(self.id)?.as_str()),
            folder: word(self.folder_id).or_else(inner),
            parent: word(self.parent_id),
            metadata: word(self.content_metadata_id),
        })
    }
}

/// Who was granted what on some content.
enum Grants {
    Listed(Bytes),
    Refused(Failure),
    Gone,
}

/// Stands for the grants of some content whose own names may not be seen.
fn unnamed(metadata: &Key) -> Key {
    Key::from(format!("content_metadata_id={metadata}").as_str())
}

/// A listed object: where it is, and where its permissions are.
struct Listed {
    key: Key,
    folder: Option<String>,
    parent: Option<String>,
    metadata: Option<String>,
}

impl Looker {
    /// Everything of a type, as it is listed now.
    pub(super) async fn census(&self, kind: &'static Kind, call: &Call) -> Result<Census, Failure> {
        match kind.list {
            List::Pages { ids, which: Which::Lookml, pages } => self.lookml(ids, pages, call).await,
            List::Pages { ids, which, pages } => {
                let mut census = Census::default();
                let path = format!("{pages}?");
                census.add_section(self.section(path, self.ids(ids, which, call).await?, call).await?);
                Ok(census)
            }
            List::PagesAndTrash { ids, which, pages } => {
                let mut census = Census::default();
                let path = format!("{pages}?deleted=false&");
                census.add_section(self.section(path, self.ids(ids, which, call).await?, call).await?);
                census.add_section(self.walked(format!("{pages}?deleted=true&"), call).await?);
                Ok(census)
            }
            List::Whole { path } | List::Groups { path } => self.whole(kind, path, call).await,
            List::Looks => self.looks(call).await,
            List::Explores => self.explores(call).await,
            List::Metadata => self.metadata(call).await,
            List::Access => self.access(kind, call).await,
            List::MergeQueries => self.merge_queries(kind, call).await,
            List::Queries => self.queries(kind, call).await,
        }
    }

    async fn ids(&self, path: &str, which: Which, call: &Call) -> Result<Vec<Key>, Failure> {
        let body = self.list(&format!("{path}?fields=id"), call).await?;
        let keys = listed(&body, path)?.into_iter().map(|one| one.key);
        Ok(keys.filter(|key| which.admits(&key.to_string())).collect())
    }

    /// Ids in the order in which the server has them in its pages, which a look tells if it matters.
    async fn section(&self, path: String, ids: Vec<Key>, call: &Call) -> Result<Section, Failure> {
        let Some(place) = parting(&ids).filter(|_| ids.len() > self.page) else {
            return Ok(Section::new(path, sorted(&ids, Order::Number)));
        };
        let known = *self.order.lock().expect("no code panics while it holds this lock");
        let order = match known {
            Some(order) => order,
            None => {
                let look = format!("{path}sorts=id&fields=id&limit=10&offset={place}");
                let body = self.list(&look, call).await?;
                let found: Vec<_> = listed(&body, &path)?.into_iter().map(|one| one.key).collect();
                order_of(&ids, place, &found).unwrap_or(Order::Number)
            }
        };
        *self.order.lock().expect("no code panics while it holds this lock") = Some(order);
        Ok(Section::new(path, sorted(&ids, order)))
    }

    async fn walked(&self, path: String, call: &Call) -> Result<Section, Failure> {
        let listed = self.walk(&path, "id", call).await?;
        Ok(Section::new(path, listed.into_iter().map(|one| one.key).collect()))
    }

    /// A list page by page, each with the last row of the one before, until one has nothing new.
    async fn walk(&self, path: &str, fields: &str, call: &Call) -> Result<Vec<Listed>, Failure> {
        for _ in 0..WALKS_MAX {
            if let Some(listed) = self.walk_once(path, fields, call).await? {
                return Ok(listed);
            }
        }
        let message = format!("{path}: rows move at every look");
        Err(Failure::new(FailureKind::Broken, message))
    }

    /// None if rows moved meanwhile. A short page is not the last: rows that may not be seen can be missing from it.
    async fn walk_once(&self, path: &str, fields: &str, call: &Call) -> Result<Option<Vec<Listed>>, Failure> {
        let (mut all, mut seen) = (Vec::<Listed>::new(), HashSet::new());
        loop {
            let offset = all.len().saturating_sub(1);
            let page = format!("{path}sorts=id&fields={fields}&limit={IDS_PAGE}&offset={offset}");
            let found = listed(&self.list(&page, call).await?, path)?;
            if all.last().is_some_and(|last| !found.iter().any(|one| one.key == last.key)) {
                return Ok(None);
            }
            let before = all.len();
            all.extend(found.into_iter().filter(|one| seen.insert(one.key.clone())));
            if all.len() == before {
                return Ok(Some(all));
            }
        }
    }

    async fn lookml(&self, ids: &str, pages: &str, call: &Call) -> Result<Census, Failure> {
        let mut census = Census::default();
        let all = self.ids(ids, Which::Lookml, call).await?;
        census.add_section(self.walked(format!("{pages}?"), call).await?);
        all.into_iter().for_each(|key| census.add(key, Spot::Alone));
        Ok(census)
    }

    async fn whole(&self, kind: &'static Kind, path: &str, call: &Call) -> Result<Census, Failure> {
        let body = self.list(path, call).await?;
        let reader = self.reader(kind);
        let mut census = Census::default();
        for raw in rows(&body, path)? {
            let key = Node::read(raw.get()).and_then(|node| reader.key_of(&node));
            let key = key.ok_or_else(|| malformed(path))?;
            census.add_body(key, raw.get().to_owned());
        }
        Ok(census)
    }

    /// Those of a folder in one answer, if they are several; the trash page by page.
    async fn looks(&self, call: &Call) -> Result<Census, Failure> {
        let body = self.list("looks?fields=id,folder_id,folder(id)", call).await?;
        let mut by_folder: BTreeMap<String, Vec<Key>> = BTreeMap::new();
        let mut loose = Vec::new();
        for one in listed(&body, "looks")? {
            match one.folder {
                Some(folder) => by_folder.entry(folder).or_default().push(one.key),
                None => loose.push(one.key),
            }
        }
        let mut census = Census::default();
        for (folder, keys) in by_folder {
            add_group(&mut census, format!("folders/{}/looks", escaped(&folder)), keys);
        }
        loose.into_iter().for_each(|key| census.add(key, Spot::Alone));
        census.add_section(self.walked("looks/search?deleted=true&".into(), call).await?);
        Ok(census)
    }

    async fn explores(&self, call: &Call) -> Result<Census, Failure> {
        let body = self.list(MODELS, call).await?;
        let mut census = Census::default();
        for raw in rows(&body, MODELS)? {
            let node = Node::read(raw.get()).ok_or_else(|| malformed(MODELS))?;
            let Some(model) = node.member("name").and_then(Node::word) else { continue };
            for explore in node.member("explores").map(Node::elements).unwrap_or_default() {
                if let Some(name) = explore.member("name").and_then(Node::word) {
                    census.add(Key::from(format!("{model}::{name}").as_str()), Spot::Alone);
                }
            }
        }
        Ok(census)
    }

    /// That of everything in a folder comes in one answer, found by the metadata of the folder.
    async fn metadata(&self, call: &Call) -> Result<Census, Failure> {
        let folders = listed(&self.list(&format!("folders?fields={MEMBERS}"), call).await?, "folders")?;
        let above: HashMap<String, String> =
            folders.iter().filter_map(|one| Some((one.key.to_string(), one.metadata.clone()?))).collect();
        let mut all: Vec<Listed> =
            folders.into_iter().map(|one| Listed { folder: one.parent.clone(), ..one }).collect();
        for path in ["dashboards", "looks", "boards"] {
            all.extend(Self::seen_of(self.members(path, call).await)?);
        }
        for path in ["dashboards/search?deleted=true&", "looks/search?deleted=true&"] {
            all.extend(Self::seen_of(self.walk(path, MEMBERS, call).await)?);
        }
        let mut groups: BTreeMap<String, Vec<Key>> = BTreeMap::new();
        let mut census = Census::default();
        for Listed { metadata, folder, .. } in all {
            let Some(key) = metadata.map(|metadata| Key::from(metadata.as_str())) else { continue };
            match folder.and_then(|folder| above.get(&folder)) {
                Some(parent) => groups.entry(parent.clone()).or_default().push(key),
                None => census.add(key, Spot::Alone),
            }
        }
        for (parent, keys) in groups {
            add_group(&mut census, format!("content_metadata?parent_id={}", escaped(&parent)), keys);
        }
        Ok(census)
    }

    async fn members(&self, path: &str, call: &Call) -> Result<Vec<Listed>, Failure> {
        listed(&self.list(&format!("{path}?fields={MEMBERS}"), call).await?, path)
    }

    /// What may not be seen has no metadata to be seen, either.
    fn seen_of(listed: Result<Vec<Listed>, Failure>) -> Result<Vec<Listed>, Failure> {
        match listed {
            Err(failure) if is_refusal(failure.kind) => Ok(Vec::new()),
            listed => listed,
        }
    }

    /// Grants, of content that has its own.
    async fn access(&self, kind: &'static Kind, call: &Call) -> Result<Census, Failure> {
        self.read_naming(kind, call).await?;
        let own: Vec<Key> = {
            let references = self.references();
            references.own_access.iter().filter(|(_, has_own)| **has_own).map(|(key, _)| key.clone()).collect()
        };
        let asked = own.into_iter().map(|key| async move { self.grants(&key, call).await.map(|list| (list, key)) });
        let lists: Vec<(Grants, Key)> = stream::iter(asked).buffered(LISTS_AT_ONCE).try_collect().await?;
        let are_all_refused = lists.iter().all(|(list, _)| matches!(list, Grants::Refused(_)));
        if let (true, Some((Grants::Refused(failure), _))) = (are_all_refused, lists.last()) {
            return Err(failure.clone());
        }
        let reader = self.reader(kind);
        let mut census = Census::default();
        for (list, metadata) in lists {
            match list {
                Grants::Listed(body) => {
                    for raw in rows(&body, kind.name)? {
                        let key = Node::read(raw.get()).and_then(|node| reader.key_of(&node));
                        census.add_body(key.ok_or_else(|| malformed(kind.name))?, raw.get().to_owned());
                    }
                }
                Grants::Refused(failure) => census.add_refused(unnamed(&metadata), failure),
                Grants::Gone => {}
            }
        }
        Ok(census)
    }

    async fn grants(&self, metadata: &Key, call: &Call) -> Result<Grants, Failure> {
        let id = escaped(&metadata.to_string());
        match self.list(&format!("content_metadata_access?content_metadata_id={id}"), call).await {
            Ok(body) => Ok(Grants::Listed(body)),
            Err(failure) if failure.kind == FailureKind::Forbidden => Ok(Grants::Refused(failure)),
            // Either it is gone with what it is for, or it may not be seen.
            Err(failure) if failure.kind == FailureKind::NotFound => {
                match self.answer(&format!("content_metadata/{id}"), call).await.map_err(Failure::from) {
                    Ok(_) => Ok(Grants::Refused(Failure::new(FailureKind::Forbidden, failure.message))),
                    Err(failure) if is_refusal(failure.kind) => Ok(Grants::Gone),
                    Err(failure) => Err(failure),
                }
            }
            Err(failure) => Err(failure),
        }
    }

    async fn merge_queries(&self, kind: &'static Kind, call: &Call) -> Result<Census, Failure> {
        self.read_naming(kind, call).await?;
        let mut census = Census::default();
        self.references().merged.iter().for_each(|key| census.add(key.clone(), Spot::Alone));
        Ok(census)
    }

    async fn queries(&self, kind: &'static Kind, call: &Call) -> Result<Census, Failure> {
        self.read_naming(kind, call).await?;
        let mut census = Census::default();
        for (key, body) in &mut self.references().queries {
            match body.take() {
                Some(body) => census.add_body(key.clone(), body),
                None => census.add(key.clone(), Spot::Alone),
            }
        }
        Ok(census)
    }
}

pub(super) fn is_refusal(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Forbidden | FailureKind::NotFound)
}

/// Several in one answer; one by itself.
fn add_group(census: &mut Census, path: String, keys: Vec<Key>) {
    if keys.len() == 1 {
        keys.into_iter().for_each(|key| census.add(key, Spot::Alone));
        return;
    }
    let group = Arc::new(Group::new(path, keys.len()));
    keys.into_iter().for_each(|key| census.add(key, Spot::Group(group.clone())));
}

/// The elements of an answer that is a list.
pub(super) fn rows<'a>(body: &'a [u8], what: &str) -> Result<Vec<&'a RawValue>, Failure> {
    serde_json::from_slice(body).map_err(|_| malformed(what))
}

fn listed(body: &[u8], what: &str) -> Result<Vec<Listed>, Failure> {
    let entries: Vec<Entry<'_>> = serde_json::from_slice(body).map_err(|_| malformed(what))?;
    Ok(entries.iter().filter_map(Entry::read).collect())
}
