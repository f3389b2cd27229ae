//! Bodies: from pages and groups where several are wanted, one by one where not.

use std::collections::{HashMap, HashSet};

use bytes::Bytes;
use futures_util::{StreamExt, future::BoxFuture, stream::FuturesUnordered};
use highwater_core::{Failure, FailureKind, Key};

use super::{
    Looker,
    census::{Census, Section, Spot},
    content::{Object, Reader, answer},
    group::Group,
    kinds::{Kind, List},
    listing::{Listed, is_end, is_refusal, listed, rows},
};
use crate::{Answer, Call, Fetched, GatewayError, escape::escaped};

/// Fewer than this that a page has not shown are asked for one by one.
const FEW: usize = 3;

/// As often as this a page with one object fails before that is asked for by itself.
const SPOILED_AFTER: u32 = 3;

/// A server may show fewer rows than it is asked for.
const LOOKS_MAX: u32 = 20;

/// What became of some keys.
type Heard = Result<Vec<Answer>, Failure>;

/// Keys of a section that one page can show.
struct Window {
    section: usize,
    first: usize,
    last: usize,
    keys: Vec<Key>,
}

impl Looker {
    pub(super) async fn bodies(
        &self,
        kind: &'static Kind,
        census: &Census,
        keys: &[Key],
        call: &Call,
    ) -> Result<Vec<Answer>, Failure> {
        let (mut places, mut groups, mut alone) = (Vec::new(), Vec::<(_, Vec<Key>)>::new(), Vec::new());
        for key in keys {
            match census.spot(key) {
                _ if census.has_body(key) => alone.push(key.clone()),
                Spot::Page { section, place } => places.push((section, place, key.clone())),
                Spot::Group(group) => {
                    match groups.iter_mut().find(|(known, _)| std::sync::Arc::ptr_eq(known, &group)) {
                        Some((_, keys)) => keys.push(key.clone()),
                        None => groups.push((group, vec![key.clone()])),
                    }
                }
                Spot::Alone => alone.push(key.clone()),
            }
        }
        let mut asked: FuturesUnordered<BoxFuture<'_, Heard>> = FuturesUnordered::new();
        for window in windows(places, self.page) {
            asked.push(Box::pin(self.paged(kind, census, window, call)));
        }
        for (group, keys) in groups {
            asked.push(Box::pin(self.grouped(kind, census, group, keys, call)));
        }
        for key in alone {
            asked.push(Box::pin(async move { Ok(vec![self.one(kind, census, key, call).await]) }));
        }
        let mut answers = Vec::with_capacity(keys.len());
        while let Some(heard) = asked.next().await {
            answers.extend(heard?);
        }
        Ok(answers)
    }

    /// A page with the row before, which tells whether rows have moved. What it does not show is asked for again.
    async fn paged(&self, kind: &'static Kind, census: &Census, window: Window, call: &Call) -> Heard {
        let mut answers = Vec::new();
        let (number, mut missing) = (window.section, window.keys);
        for _ in 0..LOOKS_MAX {
            let window = spanned(census, number, &missing);
            let shown = match self.page(kind, census, &window, &missing, call).await {
                Ok(shown) => shown,
                Err(GatewayError::Stopped(_)) => {
                    answers.extend(skipped(missing));
                    return Ok(answers);
                }
                // Not to be had together: one by one it is known which can be.
                Err(GatewayError::Failed(failure)) if is_refusal(failure.kind) => break,
                Err(GatewayError::Failed(failure)) if self.is_spoiled(kind, &missing, failure.kind) => break,
                Err(GatewayError::Failed(failure)) => return Err(failure),
            };
            let is_of_use = shown.has_moved || !shown.answers.is_empty();
            let found: HashSet<&Key> = shown.answers.iter().map(|answer| &answer.key).collect();
            missing.retain(|key| !found.contains(key));
            answers.extend(shown.answers);
            if missing.len() <= FEW || !is_of_use {
                break;
            }
        }
        let rest: FuturesUnordered<_> = missing.into_iter().map(|key| self.one(kind, census, key, call)).collect();
        answers.extend(rest.collect::<Vec<_>>().await);
        Ok(answers)
    }

    async fn page(
        &self,
        kind: &'static Kind,
        census: &Census,
        window: &Window,
        wanted: &[Key],
        call: &Call,
    ) -> Result<Shown, GatewayError> {
        let section = census.sections[window.section].clone();
        let before = usize::from(window.first > 0);
        let offset = section.offset_of(window.first - before);
        let limit = window.last - window.first + 1 + before;
        let path = format!("{}limit={limit}&offset={offset}", section.path);
        let body = self.answer(&path, call).await?;
        let wanted: HashSet<Key> = wanted.iter().cloned().collect();
        let reader = self.reader(kind);
        let read = move || read_page(&reader, &body, &wanted);
        let page = self.decoding.run(limit, read).await?;
        self.note_strays(kind, census, page.order.iter());
        let has_moved = learn(census, window.section, &section, offset, &page.order);
        Ok(Shown { answers: self.noted(kind, page.objects), has_moved })
    }

    async fn grouped(
        &self,
        kind: &'static Kind,
        census: &Census,
        group: std::sync::Arc<Group>,
        keys: Vec<Key>,
        call: &Call,
    ) -> Heard {
        let reader = self.reader(kind);
        let (mut answers, mut missing) = (Vec::new(), Vec::new());
        {
            let _turn = group.turn.lock().await;
            let mut found: Vec<_> = keys.into_iter().map(|key| (group.take(&key), key)).collect();
            let lacking = found.iter().filter(|(body, _)| body.is_none()).count();
            if lacking > 1 || lacking == 1 && !group.is_read() {
                match self.answer(&group.path, call).await {
                    Ok(body) => {
                        let mut bodies = bodies_by_key(&reader, &body, &group.path)?;
                        self.note_strays(kind, census, bodies.keys());
                        bodies.retain(|key, _| census.lists(key));
                        group.fill(bodies);
                    }
                    Err(GatewayError::Stopped(_)) => return Ok(skipped(found.into_iter().map(|(_, key)| key))),
                    // Not to be had together: one by one it is known which may be seen.
                    Err(GatewayError::Failed(failure)) if is_refusal(failure.kind) => {}
                    Err(GatewayError::Failed(failure)) => {
                        let keys: Vec<Key> = found.iter().map(|(_, key)| key.clone()).collect();
                        if !self.is_spoiled(kind, &keys, failure.kind) {
                            return Err(failure);
                        }
                    }
                }
                for (body, key) in &mut found {
                    *body = body.take().or_else(|| group.take(key));
                }
            }
            for (body, key) in found {
                match body {
                    Some(body) => answers.push(self.read_noted(kind, key, &body)),
                    None => missing.push(key),
                }
            }
        }
        let rest: FuturesUnordered<_> = missing.into_iter().map(|key| self.one(kind, census, key, call)).collect();
        answers.extend(rest.collect::<Vec<_>>().await);
        Ok(answers)
    }

    /// Whether one key is all that is left of a page which cannot be had. A moment's trouble is no reason to read an object
    /// another way, in which it may look different.
    fn is_spoiled(&self, kind: &Kind, keys: &[Key], failure: FailureKind) -> bool {
        let [key] = keys else { return false };
        let mut spoiled = self.spoiled.lock().expect("no code panics while it holds this lock");
        let failures = spoiled.entry((kind.name, key.clone())).or_insert(0);
        *failures += u32::from(!is_end(failure));
        *failures >= SPOILED_AFTER
    }

    /// One object by itself.
    async fn one(&self, kind: &'static Kind, census: &Census, key: Key, call: &Call) -> Answer {
        let body = match census.take_body(&key) {
            Some(body) => Ok(body),
            None => self.ask_one(kind, &key, call).await,
        };
        let body = match (body, kind.list) {
            (Ok(body), List::Groups { .. }) => self.with_members(&key, body, call).await,
            (body, _) => body,
        };
        match body {
            Ok(body) => self.read_noted(kind, key, &body),
            Err(GatewayError::Stopped(_)) => Answer::new(key, Fetched::Skipped),
            Err(GatewayError::Failed(failure)) if failure.kind == FailureKind::NotFound => {
                let fetched = absent(census, &key, failure);
                Answer::new(key, fetched)
            }
            Err(GatewayError::Failed(failure)) => failed(key, &failure),
        }
    }

    async fn ask_one(&self, kind: &Kind, key: &Key, call: &Call) -> Result<String, GatewayError> {
        let id = key.to_string();
        let path = match (kind.list, id.split_once("::")) {
            (List::Explores, Some((model, explore))) => {
                format!("lookml_models/{}/explores/{}", escaped(model), escaped(explore))
            }
            _ => format!("{}/{}", kind.one, escaped(&id)),
        };
        Ok(utf8(&self.answer(&path, call).await?, kind.name)?)
    }

    /// A group with the ids of its users and of the groups in it, which its own body does not have.
    async fn with_members(&self, key: &Key, body: String, call: &Call) -> Result<String, GatewayError> {
        let id = escaped(&key.to_string());
        let mut lists = Vec::new();
        for members in ["users", "groups"] {
            let path = format!("groups/{id}/{members}?fields=id");
            let mut ids: Vec<Key> = match members {
                "users" => self.walk::<Listed>(&format!("{path}&sorts=id&"), call).await?.whole()?,
                _ => listed(&self.list(&path, call).await?, &path)?,
            }
            .into_iter()
            .map(|one| one.key)
            .collect();
            ids.sort();
            ids.dedup();
            lists.push((members, ids));
        }
        Ok(extended(&body, &lists))
    }

    fn read_noted(&self, kind: &'static Kind, key: Key, body: &str) -> Answer {
        match self.reader(kind).read_one(&key, body) {
            Ok(object) => self.noted(kind, vec![object]).remove(0),
            Err(failure) => Answer::new(key, answer(Err(failure))),
        }
    }

    /// What is shown and was not listed is asked for after the second list.
    fn note_strays<'k>(&self, kind: &'static Kind, census: &Census, shown: impl Iterator<Item = &'k Key>) {
        let strays: Vec<Key> = shown.filter(|key| !census.lists(key) && kind.admits(key)).cloned().collect();
        if !strays.is_empty() {
            let mut known = self.strays.lock().expect("no code panics while it holds this lock");
            known.entry(kind.name).or_default().extend(strays);
        }
    }

    /// What objects refer to is kept for later.
    fn noted(&self, kind: &'static Kind, objects: Vec<Object>) -> Vec<Answer> {
        let mut references = self.references();
        let note = |object: Object| {
            if self.collects {
                references.note(kind, &object.key, object.found);
            }
            Answer::new(object.key, Fetched::Found(object.record))
        };
        objects.into_iter().map(note).collect()
    }
}

/// An object as it is spelled, with lists of ids as its last members.
fn extended(body: &str, lists: &[(&str, Vec<Key>)]) -> String {
    let body = body.trim_end();
    let mut extended = body.strip_suffix('}').unwrap_or(body).trim_end().to_owned();
    for (name, ids) in lists {
        let comma = if extended.ends_with('{') { "" } else { "," };
        let ids: Vec<_> = ids.iter().map(Key::to_string).collect();
        extended.push_str(&format!("{comma}\"{name}\":{}", serde_json::json!(ids)));
    }
    extended.push('}');
    extended
}

struct Shown {
    answers: Vec<Answer>,
    /// Rows are at other places than when they were listed.
    has_moved: bool,
}

struct Page {
    order: Vec<Key>,
    objects: Vec<Object>,
}

fn read_page(reader: &Reader, body: &[u8], wanted: &HashSet<Key>) -> Result<Page, Failure> {
    let mut page = Page { order: Vec::new(), objects: Vec::new() };
    for raw in rows(body, reader.kind.name)? {
        if let Some(object) = reader.read_listed(raw.get()) {
            page.order.push(object.key.clone());
            if wanted.contains(&object.key) && !page.objects.iter().any(|known| known.key == object.key) {
                page.objects.push(object);
            }
        }
    }
    Ok(page)
}

/// Compares what a page shows with where it was listed; whether that has moved.
fn learn(census: &Census, number: usize, section: &Section, offset: usize, order: &[Key]) -> bool {
    let places = |(row, key): (usize, &Key)| Some((row, census.place(number, key)?));
    let mut known = order.iter().enumerate().filter_map(places);
    let Some((row, place)) = known.next() else { return false };
    let before = section.offset_of(place);
    let has_moved = before != offset + row;
    let (row, place) = known.last().unwrap_or((row, place));
    section.learn(offset + row, place);
    has_moved
}

/// What a list of objects has, by their names.
fn bodies_by_key(reader: &Reader, body: &[u8], what: &str) -> Result<HashMap<Key, String>, Failure> {
    let named = rows(body, what)?.into_iter().filter_map(|raw| {
        let key = reader.key_of(&super::json::Node::read(raw.get())?)?;
        Some((key, raw.get().to_owned()))
    });
    Ok(named.collect())
}

/// Places in order, cut so that a page can show each piece.
fn windows(mut places: Vec<(usize, usize, Key)>, page: usize) -> Vec<Window> {
    places.sort();
    let mut windows: Vec<Window> = Vec::new();
    for (section, place, key) in places {
        match windows.last_mut() {
            Some(window) if window.section == section && place - window.first < page => {
                window.last = place;
                window.keys.push(key);
            }
            _ => windows.push(Window { section, first: place, last: place, keys: vec![key] }),
        }
    }
    windows
}

/// The stretch of a section in which these keys are.
fn spanned(census: &Census, section: usize, keys: &[Key]) -> Window {
    let places = || keys.iter().filter_map(|key| census.place(section, key));
    let (first, last) = (places().min().unwrap_or(0), places().max().unwrap_or(0));
    Window { section, first, last, keys: Vec::new() }
}

/// Requests that these keys would take.
pub(super) fn requests(census: &Census, keys: &[Key], page: usize) -> u64 {
    let (mut places, mut alone) = (Vec::new(), 0);
    let mut groups: HashMap<String, usize> = HashMap::new();
    for key in keys {
        match census.spot(key) {
            _ if census.has_body(key) => {}
            Spot::Page { section, place } => places.push((section, place, key.clone())),
            Spot::Group(group) => drop(groups.insert(group.path.clone(), group.size)),
            Spot::Alone => alone += 1,
        }
    }
    windows(places, page).len() as u64 + groups.len() as u64 + alone
}

/// There is no such object, or it may not be seen. Only what is no longer listed is believed to be gone.
fn absent(census: &Census, key: &Key, failure: Failure) -> Fetched {
    match (census.lists(key), census.is_second) {
        (false, _) if census.keys().is_empty() => {
            let message =
                format!("{}, and nothing of its type is listed: gone, or hidden from this key", failure.message);
            Fetched::Failed(Failure::new(FailureKind::Vanished, message))
        }
        (false, _) if census.has_gaps => {
            let message = format!("{}, and some of its type may not be seen: gone, or hidden", failure.message);
            Fetched::Failed(Failure::new(FailureKind::Forbidden, message))
        }
        (false, _) => Fetched::Absent,
        (true, false) => Fetched::Failed(failure),
        (true, true) => {
            let message = format!("{}, although it is listed: broken, or hidden from this key", failure.message);
            Fetched::Failed(Failure::new(FailureKind::Forbidden, message))
        }
    }
}

fn failed(key: Key, failure: &Failure) -> Answer {
    Answer::new(key, Fetched::Failed(failure.clone()))
}

fn skipped(keys: impl IntoIterator<Item = Key>) -> Vec<Answer> {
    keys.into_iter().map(|key| Answer::new(key, Fetched::Skipped)).collect()
}

fn utf8(body: &Bytes, what: &str) -> Result<String, Failure> {
    String::from_utf8(body.to_vec()).map_err(|_| super::reply::malformed(what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(place: usize) -> (usize, usize, Key) {
        (0, place, Key::Number(place as i64))
    }

    #[test]
    fn a_body_keeps_its_spelling_when_lists_are_added() {
        let lists = [("users", vec![Key::from("3"), Key::from("a\"b")]), ("groups", Vec::new())];
        let more = r#""users":["3","a\"b"],"groups":[]}"#;
        assert_eq!(extended("{}\n", &lists), format!("{{{more}"));
        let nested = r#"{ "id": "1", "can": {"see": {}}"#;
        assert_eq!(extended(&format!("{nested} }} "), &lists), format!("{nested},{more}"));
    }

    #[test]
    fn keys_near_each_other_share_a_page() {
        let shape = |places: &[usize], page| -> Vec<(usize, usize, usize)> {
            let windows = windows(places.iter().map(|at| place(*at)).collect(), page);
            windows.iter().map(|window| (window.first, window.last, window.keys.len())).collect()
        };
        assert_eq!(shape(&[0, 1, 2, 3], 4), [(0, 3, 4)]);
        assert_eq!(shape(&[0, 1, 2, 3, 4], 4), [(0, 3, 4), (4, 4, 1)]);
        assert_eq!(shape(&[90, 7, 8], 10), [(7, 8, 2), (90, 90, 1)]);
    }

    #[test]
    fn a_page_that_begins_elsewhere_moves_the_next_ones() {
        let mut census = Census::default();
        census.add_section(Section::new("x?".into(), (1..=9).map(Key::Number).collect()));
        let section = census.sections[0].clone();
        let keys = |ids: &[i64]| ids.iter().copied().map(Key::Number).collect::<Vec<_>>();
        assert!(!learn(&census, 0, &section, 2, &keys(&[3, 4, 5])));
        assert!(learn(&census, 0, &section, 2, &keys(&[4, 5, 6])), "one before them is gone");
        assert_eq!(section.offset_of(6), 5);
        assert!(!learn(&census, 0, &section, 5, &keys(&[7, 8])));
    }

    #[test]
    fn only_what_is_no_longer_listed_is_gone() {
        let failure = || Failure::new(FailureKind::NotFound, "status 404");
        let mut census = Census::default();
        census.add(Key::Number(1), Spot::Alone);
        let kind = |census: &Census, key| match absent(census, &Key::Number(key), failure()) {
            Fetched::Failed(failure) => Some(failure.kind),
            _ => None,
        };
        assert_eq!((kind(&census, 1), kind(&census, 2)), (Some(FailureKind::NotFound), None));
        census.is_second = true;
        assert_eq!(kind(&census, 1), Some(FailureKind::Forbidden));
    }
}
