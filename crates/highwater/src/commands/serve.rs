//! `highwater serve`: every source kept current until stopped, and the service shown to whoever watches it.

mod alerts;
mod counters;
mod door;
mod mailbox;
mod narrator;
mod watch;

use std::{sync::Arc, time::Duration};

use futures_util::{StreamExt, stream::FuturesUnordered};
use highwater_core::{Event, Observer};
use highwater_engine::{Pulse, ServeRequest};
use highwater_store::Store;
use highwater_web::{AccessRules, Token};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use self::{
    alerts::Alerts,
    counters::Counters,
    narrator::Narrator,
    watch::{Service, Watched},
};
use crate::{
    allocators,
    args::{Global, ServeArgs},
    arrange::arrange,
    commands::sync::chosen,
    config::{ServeConfig, SourceConfig},
    exit::{Exit, Trouble},
    notify::Notifier,
    out,
    settings::{Settings, live_settings},
    signals::{self, Signals},
    watchdog::Systemd,
};

pub(super) async fn run(global: &Global, args: &ServeArgs) -> anyhow::Result<Exit> {
    let settings = Settings::load(global)?;
    let sources = followed(chosen(&settings, &args.sources)?, &args.sources)?;
    allocators::set_up(&sources);
    let mut serve = settings.config.serve.clone();
    serve.listen = args.listen.unwrap_or(serve.listen);
    let rules = rules(&serve)?;
    rules.check(serve.listen).map_err(|error| {
        Trouble::usage(format!("serve.listen: {error}")).hint("set serve.token_env, or listen on 127.0.0.1")
    })?;
    let signals = Signals::listen()?;
    let notifier = Notifier::start(&settings.config.alerts.notify)
        .map_err(|error| Trouble::usage(format!("alerts: {error:#}")))?;
    let stop = CancellationToken::new();
    let work = async {
        let systemd = Systemd::from_env();
        let Some(store) = door::open(&settings, &systemd, &stop).await? else { return Ok(()) };
        let listener = listen(&serve).await?;
        let watched: Result<Vec<Arc<Watched>>, Trouble> =
            sources.iter().map(|source| watch(global, &settings, source, store.clone(), &stop)).collect();
        let service = Arc::new(Service::new(watched?));
        if !global.quiet {
            let address = listener.local_addr()?;
            out::complain(&format!("serving; metrics and health are at http://{address}/"));
        }
        let alerts = Alerts::new(service.clone(), notifier, settings.config.alerts.control_budget);
        let arranged = arrange(global, &settings, &*store, &stop);
        keep(&service, arranged, listener, rules, alerts, &systemd, &stop).await
    };
    let (served, signal) = signals.guard(&stop, work).await;
    match (served, signal) {
        (Ok(()), signal) => Ok(signal.unwrap_or(Exit::Failed)),
        (Err(error), Some(signal)) => {
            crate::complain(&error);
            Ok(signal)
        }
        (Err(error), None) => Err(error),
    }
}

/// A Looker instance tells nothing by itself: it is mirrored when somebody says so.
fn followed<'a>(chosen: Vec<&'a SourceConfig>, named: &[String]) -> Result<Vec<&'a SourceConfig>, Trouble> {
    let (lookers, others): (Vec<_>, Vec<_>) = chosen.into_iter().partition(|source| source.looker.is_some());
    match lookers.first() {
        Some(looker) if !named.is_empty() || others.is_empty() => {
            let message = format!("{} cannot be served: Looker does not tell of changes", looker.name);
            Err(Trouble::usage(message).hint(format!("run 'highwater sync {}' as often as you like", looker.name)))
        }
        _ => Ok(others),
    }
}

/// Everything at once, until stopped or until something fails that does not heal by itself.
async fn keep(
    service: &Arc<Service>,
    arranged: impl Future<Output = anyhow::Result<()>>,
    listener: TcpListener,
    rules: AccessRules,
    mut alerts: Alerts,
    systemd: &Systemd,
    stop: &CancellationToken,
) -> anyhow::Result<()> {
    let shutdown = CancellationToken::new();
    systemd.ready();
    let mirrors = async {
        arranged.await?;
        mirror_all(service, stop).await
    };
    let web = highwater_web::serve(listener, rules, service.clone(), shutdown.clone());
    let mut web = std::pin::pin!(web);
    let served = tokio::select! {
        biased;
        served = mirrors => served,
        served = &mut web => served.map_err(Into::into),
        () = alerts.keep() => unreachable!("alerts are watched without end"),
        () = attend(systemd, service) => unreachable!("systemd is told without end"),
        Err(error) = signals::answer_hangups() => Err(error.into()),
    };
    systemd.stopping();
    stop.cancel();
    shutdown.cancel();
    alerts.finish().await;
    served
}

/// Until all have ended. One mirror that cannot go on ends the others, in order.
async fn mirror_all(service: &Service, stop: &CancellationToken) -> anyhow::Result<()> {
    let mut mirrors: FuturesUnordered<_> = service.watched.iter().map(|watched| watched.serve()).collect();
    let mut all = Ok(());
    while let Some(served) = mirrors.next().await {
        if let (Err(error), Ok(())) = (served, &all) {
            stop.cancel();
            all = Err(error);
        }
    }
    all
}

/// Tells systemd that the loops of this process turn, and what they do.
async fn attend(systemd: &Systemd, service: &Arc<Service>) {
    let interval = systemd.watchdog_interval().unwrap_or(STATUS_EVERY).min(STATUS_EVERY);
    loop {
        systemd.beat();
        systemd.status(&service.summary());
        tokio::time::sleep(interval).await;
    }
}

const STATUS_EVERY: Duration = Duration::from_secs(10);

fn rules(serve: &ServeConfig) -> Result<AccessRules, Trouble> {
    let token = match &serve.token_env {
        None => None,
        Some(name) => {
            let secret = std::env::var(name)
                .map_err(|_| Trouble::usage(format!("serve.token_env: the variable {name} is not set")))?;
            Some(Token::new(&secret).map_err(|error| Trouble::usage(format!("serve.token_env: {error}")))?)
        }
    };
    Ok(AccessRules { allowed_hosts: serve.hosts.clone(), token })
}

async fn listen(serve: &ServeConfig) -> Result<TcpListener, Trouble> {
    TcpListener::bind(serve.listen).await.map_err(|error| {
        Trouble::usage(format!("cannot listen on {}: {error}", serve.listen))
            .hint("choose another address with serve.listen or --listen; port 0 takes a free one")
    })
}

fn watch(
    global: &Global,
    settings: &Settings,
    source: &SourceConfig,
    store: Arc<dyn Store>,
    stop: &CancellationToken,
) -> Result<Arc<Watched>, Trouble> {
    let counters = Arc::<Counters>::default();
    let narrator = Narrator::new(source.name.clone(), global.quiet);
    let observer = Both(counters.clone(), narrator);
    let engine = settings.engine(source, store, Arc::new(observer), stop.clone())?;
    let request = ServeRequest { live: live_settings(&source.hn.live), pulse: Arc::<Pulse>::default() };
    Ok(Arc::new(Watched::new(source, engine, request, counters)))
}

struct Both(Arc<Counters>, Narrator);

impl Observer for Both {
    fn notify(&self, event: &Event) {
        self.0.notify(event);
        self.1.notify(event);
    }
}
