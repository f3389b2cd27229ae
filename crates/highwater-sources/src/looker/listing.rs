//! Lists: in one answer where there is such a one, else page by page until an empty one.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

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
    walking::Step,
};
use crate::{Call, escape::escaped};

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

/// A listed object, whole.
struct Whole {
    key: Key,
    body: String,
}

impl Step for Whole {
    fn read(raw: &RawValue) -> Option<Self> {
        let id = Node::read(raw.get())?.member("id")?.word().filter(|id| !id.is_empty())?.into_owned();
        Some(Whole { key: Key::from(id.as_str()), body: raw.get().to_owned() })
    }

    fn key(&self) -> &Key {
        &self.key
    }
}

impl Step for Listed {
    fn read(raw: &RawValue) -> Option<Self> {
        serde_json::from_str::<Entry<'_>>(raw.get()).ok()?.read()
    }

    fn key(&self) -> &Key {
        &self.key
    }
}

/// A listed object: where it is, and where its permissions are.
pub(super) struct Listed {
    pub(super) key: Key,
    pub(super) folder: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) metadata: Option<String>,
}

impl Looker {
    /// Everything of a type, as it is listed now.
    pub(super) async fn census(&self, kind: &'static Kind, call: &Call) -> Result<Census, Failure> {
        let mut census = Census::default();
        match kind.list {
            List::Pages { ids, which, pages } => self.lookml(&mut census, ids, which, pages, call).await?,
            List::PagesAndTrash { ids, which, pages } => {
                let path = format!("{pages}?deleted=false&sorts=id&");
                let ids = self.ids(&mut census, ids, which, call).await?;
                census.add_section(self.section(path, ids, call).await?);
                self.add_trash(&mut census, format!("{pages}?deleted=true&sorts=id&"), call).await?;
            }
            List::Walked { pages } => {
                let path = format!("{pages}?sorts=id&");
                census.add_walked(path.clone(), self.walk(&format!("{path}fields=id&"), call).await?);
            }
            List::Whole { path } => self.whole(&mut census, kind, path, call).await?,
            List::WholePages { path } | List::Groups { path } => {
                let walked = self.walk::<Whole>(path, call).await?;
                walked.unlisted.into_iter().for_each(|one| census.leave_out(&one.part, one.failure));
                walked.rows.into_iter().for_each(|one| census.add_body(one.key, one.body));
                walked.earlier.into_iter().for_each(|one| census.add_stray(one.key));
            }
            List::Looks => self.looks(&mut census, call).await?,
            List::Explores => self.explores(&mut census, call).await?,
            List::Metadata => self.metadata(&mut census, call).await?,
            List::Access => self.access(&mut census, kind, call).await?,
            List::MergeQueries => {
                self.read_naming(&mut census, kind, call).await?;
                self.references().merged.iter().for_each(|key| census.add(key.clone(), Spot::Alone));
            }
            List::Queries => self.queries(&mut census, kind, call).await?,
        }
        Ok(census)
    }

    /// What the pages of a type show after the last that was listed, and what they have shown between.
    pub(super) async fn add_strays(
        &self,
        census: &mut Census,
        kind: &'static Kind,
        call: &Call,
    ) -> Result<(), Failure> {
        if let (List::PagesAndTrash { .. }, Some(live)) = (kind.list, census.sections.first().cloned()) {
            let beyond = self.walk_from::<Listed>(&format!("{}fields=id&", live.path), live.ids.len(), call).await?;
            beyond.unlisted.into_iter().for_each(|one| census.leave_out(&one.part, one.failure));
            let shown = beyond.rows.into_iter().chain(beyond.earlier);
            shown.filter(|one| kind.admits(&one.key)).for_each(|one| census.add_stray(one.key));
        }
        let mut known = self.strays.lock().expect("no code panics while it holds this lock");
        known.remove(kind.name).unwrap_or_default().into_iter().for_each(|key| census.add_stray(key));
        Ok(())
    }

    /// A trash that cannot be listed is no reason to do without the rest.
    async fn add_trash(&self, census: &mut Census, path: String, call: &Call) -> Result<(), Failure> {
        match self.walk(&format!("{path}fields=id&"), call).await {
            Ok(walked) => census.add_walked(path, walked),
            Err(failure) if self.is_over(&failure) => return Err(failure),
            Err(failure) => census.leave_out("trash", failure),
        }
        Ok(())
    }

    async fn ids(&self, census: &mut Census, path: &str, which: Which, call: &Call) -> Result<Vec<Key>, Failure> {
        let body = self.list(&format!("{path}?fields=id"), call).await?;
        let all = listed_in(census, &body, path)?.into_iter().map(|one| one.key);
        Ok(all.filter(|key| which.admits(&key.to_string())).collect())
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
                let look = format!("{path}fields=id&limit=10&offset={place}");
                match self.list(&look, call).await {
                    Ok(body) => {
                        let found: Vec<_> = listed(&body, &path)?.into_iter().map(|one| one.key).collect();
                        order_of(&ids, place, &found).unwrap_or(Order::Number)
                    }
                    Err(failure) if self.is_over(&failure) => return Err(failure),
                    // Pages are followed wherever their rows are; it takes a few requests more.
                    Err(_) => return Ok(Section::new(path, sorted(&ids, Order::Number))),
                }
            }
        };
        *self.order.lock().expect("no code panics while it holds this lock") = Some(order);
        Ok(Section::new(path, sorted(&ids, order)))
    }

    /// Pages if they can be had, which some versions refuse for these; all of them can be had singly.
    async fn lookml(
        &self,
        census: &mut Census,
        ids: &str,
        which: Which,
        pages: &str,
        call: &Call,
    ) -> Result<(), Failure> {
        let all = self.ids(census, ids, which, call).await?;
        let path = format!("{pages}?sorts=id&");
        match self.walk::<Listed>(&format!("{path}fields=id&"), call).await {
            Ok(walked) if walked.unlisted.is_empty() => census.add_walked(path, walked),
            Err(failure) if self.is_over(&failure) => return Err(failure),
            _ => {}
        }
        all.into_iter().for_each(|key| census.add(key, Spot::Alone));
        Ok(())
    }

    async fn whole(&self, census: &mut Census, kind: &'static Kind, path: &str, call: &Call) -> Result<(), Failure> {
        let body = self.list(path, call).await?;
        let reader = self.reader(kind);
        for raw in rows(&body, path)? {
            match Node::read(raw.get()).and_then(|node| reader.key_of(&node)) {
                Some(key) => census.add_body(key, raw.get().to_owned()),
                None => census.leave_out_nameless(),
            }
        }
        Ok(())
    }

    /// Those of a folder in one answer; the trash page by page.
    async fn looks(&self, census: &mut Census, call: &Call) -> Result<(), Failure> {
        let body = self.list("looks?fields=id,folder_id,folder(id)", call).await?;
        let mut by_folder: BTreeMap<String, Vec<Key>> = BTreeMap::new();
        let mut loose = Vec::new();
        for one in listed_in(census, &body, "looks")? {
            match one.folder {
                Some(folder) => by_folder.entry(folder).or_default().push(one.key),
                None => loose.push(one.key),
            }
        }
        for (folder, keys) in by_folder {
            add_group(census, format!("folders/{}/looks", escaped(&folder)), keys);
        }
        loose.into_iter().for_each(|key| census.add(key, Spot::Alone));
        self.add_trash(census, "looks/search?deleted=true&sorts=id&".into(), call).await
    }

    async fn explores(&self, census: &mut Census, call: &Call) -> Result<(), Failure> {
        let body = self.list(MODELS, call).await?;
        for raw in rows(&body, MODELS)? {
            let node = Node::read(raw.get()).ok_or_else(|| malformed(MODELS))?;
            let Some(model) = name_of(&node) else {
                census.leave_out_nameless();
                continue;
            };
            match node.member("explores") {
                None | Some(Node::Plain("null")) => {}
                Some(Node::List(explores)) => explores.iter().for_each(|explore| match name_of(explore) {
                    Some(name) => census.add(Key::from(format!("{model}::{name}").as_str()), Spot::Alone),
                    None => census.leave_out(&format!("an explore of {model} without a name"), malformed(MODELS)),
                }),
                Some(_) => census.leave_out(&format!("the explores of {model}"), malformed(MODELS)),
            }
        }
        Ok(())
    }

    async fn queries(&self, census: &mut Census, kind: &'static Kind, call: &Call) -> Result<(), Failure> {
        self.read_naming(census, kind, call).await?;
        for (key, body) in &mut self.references().queries {
            match body.take() {
                Some(body) => census.add_body(key.clone(), body),
                None => census.add(key.clone(), Spot::Alone),
            }
        }
        Ok(())
    }
}

fn name_of<'n>(node: &Node<'n>) -> Option<Cow<'n, str>> {
    node.member("name").and_then(Node::word).filter(|name| !name.is_empty())
}

/// The account itself cannot be used, or not any more.
pub(super) fn is_end(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Credentials | FailureKind::Spent)
}

pub(super) fn is_refusal(kind: FailureKind) -> bool {
    matches!(kind, FailureKind::Forbidden | FailureKind::NotFound)
}

pub(super) fn add_group(census: &mut Census, path: String, keys: Vec<Key>) {
    let group = Arc::new(Group::new(path, keys.len()));
    keys.into_iter().for_each(|key| census.add(key, Spot::Group(group.clone())));
}

/// The elements of an answer that is a list.
pub(super) fn rows<'a>(body: &'a [u8], what: &str) -> Result<Vec<&'a RawValue>, Failure> {
    serde_json::from_slice(body).map_err(|_| malformed(what))
}

pub(super) fn listed(body: &[u8], what: &str) -> Result<Vec<Listed>, Failure> {
    let entries: Vec<Entry<'_>> = serde_json::from_slice(body).map_err(|_| malformed(what))?;
    Ok(entries.iter().filter_map(Entry::read).collect())
}

/// As `listed`; a row without a name is told of.
fn listed_in(census: &mut Census, body: &[u8], what: &str) -> Result<Vec<Listed>, Failure> {
    let found = listed(body, what)?;
    if found.len() < rows(body, what)?.len() {
        census.leave_out_nameless();
    }
    Ok(found)
}
