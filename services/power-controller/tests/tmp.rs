//! temporary
use std::{collections::*, net::SocketAddr, sync::{Arc, atomic::{AtomicU8, Ordering}}, time::{Duration, Instant}};
use chassis::{Context, Settings, channel::LARGEST_MESSAGE};
use proto::{component::{*, component_service_client::ComponentServiceClient, report_service_client::ReportServiceClient},
  power::{*, power_service_client::PowerServiceClient}, simulation::{self as sim, fleet_service_client::FleetServiceClient}};
use tokio::{net::{TcpListener, TcpStream}, io::{AsyncReadExt, AsyncWriteExt}};
use futures_util::StreamExt;

const NORMAL: u8 = 0; const MUTE: u8 = 1; const CUT: u8 = 2;
async fn proxy(listener: TcpListener, to: SocketAddr, mode: Arc<AtomicU8>) {
  loop {
    let (mut a, _) = listener.accept().await.unwrap();
    let mode = mode.clone();
    tokio::spawn(async move {
      let mut b = TcpStream::connect(to).await.unwrap(); b.set_nodelay(true).unwrap(); a.set_nodelay(true).unwrap();
      let (mut ar, mut aw) = a.split(); let (mut br, mut bw) = b.split();
      let up = async { let mut buf = vec![0; 65536]; loop { let n = ar.read(&mut buf).await.unwrap_or(0); if n == 0 { break } if mode.load(Ordering::SeqCst) == CUT { continue; } bw.write_all(&buf[..n]).await.ok(); } };
      let down = async { let mut buf = vec![0; 65536]; loop { let n = br.read(&mut buf).await.unwrap_or(0); if n == 0 { break }
          if mode.load(Ordering::SeqCst) == MUTE { continue; } if aw.write_all(&buf[..n]).await.is_err() { break } } };
      tokio::select!{ _ = up => {}, _ = down => {} }
    });
  }
}
fn set(n: u32) -> (tempfile::TempDir, Settings) {
  let _ = tracing_subscriber::fmt().with_env_filter("info").with_test_writer().try_init();
  let d = tempfile::tempdir().unwrap();
  let mut s = Settings { data_dir: d.path().to_owned(), ..Settings::default() };
  s.simulator.nodes = n; s.simulator.speed = 0.0; s.simulator.initial_power = "off".into();
  (d, s)
}
struct World { _d: tempfile::TempDir, base: Context, settings: Settings, mode: Arc<AtomicU8>, pc: Option<Context>, pc_addr: SocketAddr }
impl World {
  async fn new(n: u32) -> Self {
    let (d, mut s) = set(n);
    let reg = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let simu = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let pcl = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let prox = TcpListener::bind("127.0.0.1:0").await.unwrap();
    s.component_registry.url = format!("http://{}", reg.local_addr().unwrap());
    let sim_addr = simu.local_addr().unwrap();
    s.simulator.url = format!("http://{sim_addr}");
    let base = Context::new(s.clone());
    simulator::start(base.clone(), simu).await.unwrap();
    component_registry::start(base.clone(), reg).await.unwrap();
    let mode = Arc::new(AtomicU8::new(NORMAL));
    let mut ps = s.clone(); ps.simulator.url = format!("http://{}", prox.local_addr().unwrap());
    tokio::spawn(proxy(prox, sim_addr, mode.clone()));
    let pc_addr = pcl.local_addr().unwrap(); drop(pcl);
    let mut w = World { _d: d, base, settings: ps, mode, pc: None, pc_addr };
    let _ = &s;
    while w.components().await.len() < n as usize { tokio::time::sleep(Duration::from_millis(20)).await; }
    w.start_pc().await; w
  }
  async fn start_pc(&mut self) {
    let c = Context::new(self.settings.clone());
    let l = loop { match TcpListener::bind(self.pc_addr).await { Ok(l) => break l, Err(_) => tokio::time::sleep(Duration::from_millis(20)).await } };
    power_controller::start(c.clone(), l).await.unwrap();
    self.pc = Some(c);
  }
  async fn stop_pc(&mut self) {
    let c = self.pc.take().unwrap(); c.tasks.shutdown().cancel(); c.tasks.finished(Duration::from_secs(5)).await.unwrap();
  }
  fn reg(&self) -> chassis::Channel { chassis::channel(&self.settings.component_registry.url).unwrap() }
  fn sim(&self) -> FleetServiceClient<chassis::Channel> { FleetServiceClient::new(chassis::channel(&self.base.settings.simulator.url).unwrap()).max_decoding_message_size(LARGEST_MESSAGE) }
  fn pcc(&self) -> PowerServiceClient<chassis::Channel> { PowerServiceClient::new(chassis::channel(&format!("http://{}", self.pc_addr)).unwrap()) }
  async fn components(&self) -> BTreeMap<String, Component> {
    let mut c = ComponentServiceClient::new(self.reg()).max_decoding_message_size(LARGEST_MESSAGE);
    let mut s = c.list_components(ListComponentsRequest::default()).await.unwrap().into_inner();
    let mut m = BTreeMap::new(); while let Some(p) = s.next().await { for x in p.unwrap().components { m.insert(x.id.clone(), x); } } m
  }
  async fn assign(&self, ids: &[String], name: &str) {
    let a = Assignment { ids: ids.to_vec(), boot_artifacts: Some(BootArtifacts { kernel: Some("k".into()), kernel_parameters: Some("p".into()), initrd: Some("i".into()), timestamp: None }), configuration: String::new(), clear_actual_state: true, clear_bss_token: false };
    ReportServiceClient::new(self.reg()).assign_session(AssignSessionRequest { assignment_id: name.into(), session: name.into(), assignments: vec![a], stage: false }).await.unwrap();
  }
  async fn phase(&self, ids: &[String], phase: Phase) {
    let c = self.components().await;
    let reports = ids.iter().map(|i| StatusReport { id: i.clone(), revision: c[i].revision, phase: phase.into(), status_override: String::new(), settled: false, action_failed: false, error: None }).collect();
    let r = ReportServiceClient::new(self.reg()).report_statuses(ReportStatusesRequest { reports }).await.unwrap().into_inner();
    assert!(r.stale_ids.is_empty(), "{:?}", r.stale_ids);
  }
  async fn prepare(&self, ids: &[String], attempt: u32) {
    let c = self.components().await;
    let reports = ids.iter().map(|i| PreparationReport { id: i.clone(), generation: c[i].generation, attempt, bss_token: "t".into(), error: String::new() }).collect();
    ReportServiceClient::new(self.reg()).report_preparations(ReportPreparationsRequest { reports, tokens: vec![BootToken { token: "t".into(), boot_artifacts: Some(BootArtifacts::default()) }] }).await.unwrap();
  }
  async fn transitions(&self) -> Vec<sim::AcceptedTransition> { self.sim().list_transitions(sim::ListTransitionsRequest { since: None }).await.unwrap().into_inner().transitions }
  async fn ours(&self) -> Vec<Transition> {
    let mut s = self.pcc().list_transitions(ListTransitionsRequest::default()).await.unwrap().into_inner();
    let mut v = vec![]; while let Some(p) = s.next().await { v.extend(p.unwrap().transitions) } v }
  async fn states(&self) -> BTreeMap<String, PowerState> {
    let mut s = self.pcc().list_power_states(ListPowerStatesRequest::default()).await.unwrap().into_inner();
    let mut m = BTreeMap::new(); while let Some(p) = s.next().await { for x in p.unwrap().power_states { m.insert(x.id.clone(), x); } } m }
  fn show(t: &[Transition]) { for t in t { eprintln!("  {} {:?} {:?} n={} up={} err={}", &t.id[..8], t.action(), t.delivery(), t.members.len(), t.upstream_id, t.error) } }
}
async fn until<F: Future<Output = bool>>(what: &str, f: impl Fn() -> F) -> Duration {
  let t = Instant::now();
  while !f().await { assert!(t.elapsed() < Duration::from_secs(40), "{what}"); tokio::time::sleep(Duration::from_millis(5)).await; } t.elapsed()
}

#[tokio::test(flavor = "multi_thread")]
async fn whole_machine() {
  let w = World::new(5000).await;
  let mut ids: Vec<String> = w.components().await.into_keys().collect();
  eprintln!("discovered {}", ids.len());
  let mut cc = ComponentServiceClient::new(w.reg());
  cc.put_components(PutComponentsRequest { components: vec![Component { id: "bogus1".into(), ..Default::default() }, Component { id: "x1000bogus".into(), ..Default::default() }] }).await.unwrap();
  ids.push("bogus1".into()); ids.push("x1000bogus".into());
  w.assign(&ids, "s1").await;
  let gens: BTreeMap<_, _> = w.components().await.into_iter().map(|(k, v)| (k, v.generation)).collect();
  let d = until("sensed", || async { let s = w.states().await; ids.iter().all(|i| s.get(i).is_some_and(|s| s.generation == gens[i])) }).await;
  eprintln!("sensed in {d:?}; bogus = {:?}", w.states().await["bogus1"]);
  w.phase(&ids, Phase::PoweringOn).await;
  tokio::time::sleep(Duration::from_millis(200)).await;
  assert!(w.transitions().await.is_empty(), "not prepared");
  let t = Instant::now();
  w.prepare(&ids, 1).await;
  eprintln!("prepared after {:?}", t.elapsed());
  let d = until("all called", || async { w.transitions().await.iter().map(|t| t.ids.len()).sum::<usize>() >= 5000 }).await;
  eprintln!("all called after {d:?} {:?}", t.elapsed());
  until("errors", || async { let c = w.components().await; !c["bogus1"].power_error.is_empty() && !c["x1000bogus"].power_error.is_empty() }).await;
  until("on", || async { let s = w.states().await; s.values().filter(|s| s.reading() == PowerReading::On).count() == 5000 }).await;
  let trs = w.transitions().await; let mut seen = HashSet::new();
  for t in &trs { for i in &t.ids { assert!(seen.insert(i.clone()), "twice {i}"); } }
  eprintln!("{} upstream transitions; sizes {:?}", trs.len(), trs.iter().map(|t| t.ids.len()).collect::<Vec<_>>());
  let c = w.components().await;
  assert!(ids.iter().all(|i| c[i].event_stats.as_ref().unwrap().power_on_attempts == Some(1)));
  eprintln!("{} / {}", c["bogus1"].power_error, c["x1000bogus"].power_error);
  let o = w.ours().await; eprintln!("ours {} refused {}", o.len(), o.iter().filter(|t| t.delivery() == Delivery::Refused).count());
  w.base.tasks.shutdown().cancel(); w.pc.as_ref().unwrap().tasks.shutdown().cancel();
}

async fn ready_to_boot(n: u32) -> (World, Vec<String>) {
  let w = World::new(n).await;
  let ids: Vec<String> = w.components().await.into_keys().collect();
  w.assign(&ids, "s1").await; w.phase(&ids, Phase::PoweringOn).await;
  tokio::time::sleep(Duration::from_millis(300)).await; (w, ids)
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_answer_is_adopted() {
  let (w, ids) = ready_to_boot(50).await;
  w.mode.store(MUTE, Ordering::SeqCst);
  w.prepare(&ids, 1).await;
  until("arrived", || async { !w.transitions().await.is_empty() }).await;
  World::show(&w.ours().await);
  let d = until("unknown", || async { w.ours().await.iter().any(|t| t.delivery() == Delivery::Unknown) }).await;
  eprintln!("unknown after {d:?}");
  World::show(&w.ours().await);
  w.mode.store(NORMAL, Ordering::SeqCst);
  let d = until("adopted", || async { w.ours().await.iter().all(|t| t.delivery() == Delivery::Accepted) }).await;
  eprintln!("adopted after {d:?}"); World::show(&w.ours().await);
  assert_eq!(w.transitions().await.len(), 1);
  let d = until("read", || async { w.states().await.values().all(|s| s.reading() == PowerReading::On) }).await;
  eprintln!("re-read after {d:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn restart_in_the_middle() {
  let (mut w, ids) = ready_to_boot(50).await;
  w.mode.store(MUTE, Ordering::SeqCst);
  w.prepare(&ids, 1).await;
  until("arrived", || async { !w.transitions().await.is_empty() }).await;
  w.stop_pc().await;
  w.mode.store(NORMAL, Ordering::SeqCst);
  w.start_pc().await;
  let d = until("adopted", || async { let o = w.ours().await; !o.is_empty() && o.iter().all(|t| t.delivery() == Delivery::Accepted) }).await;
  eprintln!("adopted after {d:?}"); World::show(&w.ours().await);
  assert_eq!(w.transitions().await.len(), 1);
  let c = w.components().await; assert!(ids.iter().all(|i| c[i].event_stats.as_ref().unwrap().power_on_attempts == Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn outage() {
  let (mut w, ids) = ready_to_boot(50).await;
  // point at a closed port
  w.stop_pc().await;
  let good = w.settings.simulator.url.clone();
  let l = TcpListener::bind("127.0.0.1:0").await.unwrap(); let dead = l.local_addr().unwrap(); drop(l);
  w.settings.simulator.url = format!("http://{dead}");
  w.start_pc().await;
  w.prepare(&ids, 1).await;
  until("error shown", || async { w.components().await.values().all(|c| !c.power_error.is_empty()) }).await;
  eprintln!("{}", w.components().await[&ids[0]].power_error);
  World::show(&w.ours().await);
  let rev = w.components().await.values().map(|c| c.revision).max();
  tokio::time::sleep(Duration::from_secs(2)).await;
  assert_eq!(rev, w.components().await.values().map(|c| c.revision).max(), "no flapping");
  World::show(&w.ours().await);
  // upstream comes back
  let _ = good;
  let l = TcpListener::bind(dead).await.unwrap();
  tokio::spawn(proxy(l, w.base.settings.simulator.url.trim_start_matches("http://").parse().unwrap(), w.mode.clone()));
  let d = until("accepted", || async { w.ours().await.iter().all(|t| t.delivery() == Delivery::Accepted) }).await;
  eprintln!("accepted after {d:?}");
  until("cleared", || async { w.components().await.values().all(|c| c.power_error.is_empty()) }).await;
  assert_eq!(w.transitions().await.len(), 1);
  let c = w.components().await; assert!(ids.iter().all(|i| c[i].event_stats.as_ref().unwrap().power_on_attempts == Some(1)));
}

#[tokio::test(flavor = "multi_thread")]
async fn lost_request_is_sent_again() {
  let (w, ids) = ready_to_boot(50).await;
  w.mode.store(CUT, Ordering::SeqCst); // existing connections stay; drop them by muting? restart of proxy conn not possible
  w.prepare(&ids, 1).await;
  until("unknown", || async { w.ours().await.iter().any(|t| t.delivery() == Delivery::Unknown) }).await;
  // wanted off by now: must not be asked for while the on is unresolved
  let b: Vec<String> = ids[..10].to_vec();
  w.assign(&b, "s2").await; w.phase(&b, Phase::PoweringOff).await;
  tokio::time::sleep(Duration::from_secs(3)).await;
  World::show(&w.ours().await);
  assert_eq!(w.ours().await.len(), 1);
  w.mode.store(NORMAL, Ordering::SeqCst);
  let t = Instant::now();
  until("accepted", || async { let o = w.ours().await; !o.is_empty() && o.iter().all(|t| t.delivery() == Delivery::Accepted) }).await;
  eprintln!("after {:?}", t.elapsed()); tokio::time::sleep(Duration::from_secs(1)).await;
  World::show(&w.ours().await); for t in w.transitions().await { eprintln!("up {:?} {}", t.operation(), t.ids.len()); }
}
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand() {
  let (w, ids) = ready_to_boot(10000).await;
  let t = Instant::now();
  w.prepare(&ids, 1).await;
  eprintln!("prepared after {:?}", t.elapsed()); let t = Instant::now();
  until("all called", || async { w.ours().await.iter().filter(|t| t.delivery() == Delivery::Accepted).count() >= 4 }).await;
  eprintln!("all called after {:?}", t.elapsed());
  until("on", || async { let s = w.states().await; s.values().filter(|s| s.reading() == PowerReading::On).count() == 10000 }).await;
  eprintln!("all seen on after {:?}", t.elapsed());
  World::show(&w.ours().await);
  w.assign(&ids, "s2").await; w.phase(&ids, Phase::PoweringOff).await;
  let t = Instant::now();
  until("off", || async { let s = w.states().await; s.values().filter(|s| s.reading() == PowerReading::Off).count() == 10000 }).await;
  eprintln!("all seen off after {:?}", t.elapsed());
  World::show(&w.ours().await);
}
