//! A remote of a test's own making, with rules before it and changes at a given request.

use std::sync::{Arc, Mutex};

use super::{
    Reply,
    wire::{Ask, listen},
};

/// What there is to be asked for.
pub(crate) trait World: Send + 'static {
    fn answer(&self, ask: &Ask) -> Reply;
}

type Rule<W> = Box<dyn Fn(&Ask, &W) -> Option<Reply> + Send>;
type Change<W> = Box<dyn FnOnce(&mut W) + Send>;

/// Something that happens before a path is answered for the n-th time.
struct Cue<T> {
    path: &'static str,
    time: usize,
    act: T,
}

impl<T> Cue<T> {
    fn is_for(&self, path: &str, time: usize) -> bool {
        (self.path, self.time) == (path, time)
    }
}

struct State<W> {
    world: W,
    /// Answers before the world does.
    rule: Option<Rule<W>>,
    change: Option<Cue<Change<W>>>,
    /// Done while others may ask.
    interlude: Option<Cue<Box<dyn FnOnce() + Send>>>,
    /// The path of every request.
    asked: Vec<String>,
}

impl<W: World> State<W> {
    fn times(&self, path: &str) -> usize {
        self.asked.iter().filter(|asked| *asked == path).count()
    }

    fn answer(&mut self, ask: &Ask) -> Reply {
        self.asked.push(ask.path.clone());
        let time = self.times(&ask.path);
        if let Some(cue) = self.change.take_if(|cue| cue.is_for(&ask.path, time)) {
            (cue.act)(&mut self.world);
        }
        let ruled = self.rule.as_ref().and_then(|rule| rule(ask, &self.world));
        ruled.unwrap_or_else(|| self.world.answer(ask))
    }
}

/// Clones are the same stage.
pub(crate) struct Stage<W> {
    /// Shared with the threads that answer.
    state: Arc<Mutex<State<W>>>,
}

impl<W> Clone for Stage<W> {
    fn clone(&self) -> Self {
        Stage { state: self.state.clone() }
    }
}

impl<W: World> Stage<W> {
    pub(crate) fn new(world: W) -> Stage<W> {
        let state = State { world, rule: None, change: None, interlude: None, asked: Vec::new() };
        Stage { state: Arc::new(Mutex::new(state)) }
    }

    /// The address at which it answers. What its paths begin with is left away.
    pub(crate) fn listen(&self, beginning: &'static str) -> String {
        let stage = self.clone();
        listen(beginning, move |ask| {
            let interlude = stage.with(|state| {
                let time = state.times(&ask.path) + 1;
                state.interlude.take_if(|cue| cue.is_for(&ask.path, time))
            });
            if let Some(interlude) = interlude {
                (interlude.act)();
            }
            stage.with(|state| state.answer(ask))
        })
    }

    fn with<T>(&self, look: impl FnOnce(&mut State<W>) -> T) -> T {
        look(&mut self.state.lock().unwrap())
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut W) -> T) -> T {
        self.with(|state| change(&mut state.world))
    }

    pub(crate) fn change_at(&self, path: &'static str, time: usize, change: impl FnOnce(&mut W) + Send + 'static) {
        self.with(|state| state.change = Some(Cue { path, time, act: Box::new(change) }));
    }

    pub(crate) fn interrupt_at(&self, path: &'static str, time: usize, act: impl FnOnce() + Send + 'static) {
        self.with(|state| state.interlude = Some(Cue { path, time, act: Box::new(act) }));
    }

    pub(crate) fn rule(&self, rule: impl Fn(&Ask, &W) -> Option<Reply> + Send + 'static) {
        self.with(|state| state.rule = Some(Box::new(rule)));
    }

    /// How often a path was asked for.
    pub(crate) fn times(&self, path: &str) -> usize {
        self.with(|state| state.times(path))
    }

    /// Requests but those for these paths.
    pub(crate) fn requests_but(&self, paths: &[&str]) -> usize {
        self.with(|state| state.asked.iter().filter(|asked| !paths.contains(&asked.as_str())).count())
    }
}
