//! The server: a process of its own that holds a device's data and model and answers the kernel.
//!
//! It is a process of its own because whoever makes load on the device may be killed while the kernel
//! waits for an answer: its threads then end only once the answer has come, so the answer must come
//! from somebody else. For the same reason it never opens anything on its own filesystem.

use crate::{
    clock,
    data::Data,
    filesystem::{self, Answer as Reply, Buffers, OneFile},
    pacer::{Deliver, Handed, Pacer},
    protocol::{Answer, Begin, Order, Sight, Talk, Way},
    softirq::Softirqs,
    ublk::{Desk, Queue, Slip},
};
use device::{Device, Profile, profile};
use fuser::Session;
use std::{io, num::NonZeroUsize, os::unix::net::UnixStream, path::Path, sync::Arc, thread};
use units::Nanos;

/// The word that makes the program `spindle` a server.
pub const SERVER_WORD: &str = "emulate-server";

/// Threads that read requests. One keeps them in the order in which the kernel sent them.
const READERS: usize = 1;

/// Serves one device until its filesystem is unmounted, or its ublk device stopped. `control` is the
/// controller's end.
pub fn serve(control: UnixStream) -> io::Result<()> {
    let mut talk = Talk::over(control)?;
    let Some(Order::Begin(begin)) = talk.hear()? else { return Ok(()) };
    clock::be_storage();
    let served = match Served::of(&begin) {
        Ok(served) => served,
        Err(why) => return talk.say(&Answer::Refused { why }),
    };
    match begin.way {
        Way::Fuse { point } => match served.through_fuse(&point) {
            Ok((state, session)) => state.go(talk, |_| session.run()),
            Err(why) => talk.say(&Answer::Refused { why }),
        },
        Way::Ublk { index, tags, encoded } => match served.through_ublk(index, tags, encoded) {
            Ok((state, queue)) => state.go(talk, |pacer| queue.run(&pacer)),
            Err(why) => talk.say(&Answer::Refused { why }),
        },
    }
}

/// What is served, whichever way.
struct Served {
    profile: Profile,
    device: Box<dyn Device>,
    data: Arc<Data>,
}

/// What the controller asks about and changes; `T` is what the transport calls a request.
struct State<T: Send + 'static> {
    profile: Profile,
    data: Arc<Data>,
    pacer: Arc<Pacer<T>>,
}

impl Served {
    fn of(begin: &Begin) -> Result<Served, String> {
        let profile = profile::load(&begin.profile).map_err(|error| error.to_string())?;
        let device = profile.build(begin.seed).map_err(|error| error.to_string())?;
        let data = Data::open(&begin.place, begin.size).map_err(|error| match &begin.place {
            crate::Place::Memory => format!("no memory for the data: {error}"),
            crate::Place::File(path) => format!("{}: {error}", path.display()),
        })?;
        Ok(Served { profile, device, data: Arc::new(data) })
    }

    fn paced<T: Send + 'static>(self, deliver: Deliver<T>) -> Result<State<T>, String> {
        let Served { profile, device, data } = self;
        let pacer = Pacer::start(device, may_spin(), deliver)
            .map_err(|error| format!("no thread or timer for pacing: {error}"))?;
        Ok(State { profile, data, pacer: Arc::new(pacer) })
    }

    fn through_fuse(self, point: &Path) -> Result<(State<Reply>, Session<OneFile>), String> {
        let buffers = Arc::new(Buffers::default());
        let its = Arc::clone(&buffers);
        let softirqs = Softirqs::new().map_err(|error| format!("a socket: {error}"))?;
        let state = self.paced(Box::new(move |answer, inside, _| {
            its.answer(answer, inside);
            softirqs.run();
            Handed::Over
        }))?;
        let (data, pacer) = (Arc::clone(&state.data), Arc::clone(&state.pacer));
        let file = OneFile { data, pacer, buffers };
        let session = Session::new(file, point, &filesystem::config(READERS))
            .map_err(|error| format!("FUSE on {}: {error}", point.display()))?;
        Ok((state, session))
    }

    fn through_ublk(
        self,
        index: u32,
        tags: u32,
        encoded: bool,
    ) -> Result<(State<Slip>, Queue), String> {
        let refused = |error: io::Error| format!("the queue of /dev/ublkc{index}: {error}");
        let tags = u16::try_from(tags).map_err(|_| format!("a queue of {tags} tags"))?;
        let desk = Arc::new(Desk::new().map_err(refused)?);
        let its = Arc::clone(&desk);
        let state = self.paced(Box::new(move |slip, inside, due| its.put(slip, inside, due)))?;
        let data = Arc::clone(&state.data);
        let queue = Queue::open(index, tags, encoded, data, desk).map_err(refused)?;
        Ok((state, queue))
    }
}

/// Whether there is a processor to spin on: where there is one alone, everybody else waits for it.
fn may_spin() -> bool {
    thread::available_parallelism().map_or(1, NonZeroUsize::get) > 1
}

impl<T: Send + 'static> State<T> {
    /// Serves, by `run`, and obeys meanwhile.
    fn go(
        self,
        mut talk: Talk,
        run: impl FnOnce(Arc<Pacer<T>>) -> io::Result<()>,
    ) -> io::Result<()> {
        let pacer = Arc::clone(&self.pacer);
        talk.say(&Answer::Serving { spins: may_spin() })?;
        thread::Builder::new().name("control".to_owned()).spawn(move || {
            // The end of the controller is no end of ours: data are in our hands.
            let _ = self.obey(talk);
        })?;
        // The threads that read requests take this one's scheduling.
        clock::hurry_with_children();
        run(pacer)
    }

    fn obey(&self, mut talk: Talk) -> io::Result<()> {
        while let Some(order) = talk.hear()? {
            let answer = match order {
                Order::Begin(_) => Answer::Refused { why: "it serves already".to_owned() },
                Order::Look => Answer::Seen(Box::new(self.sight())),
                Order::Forget => {
                    self.pacer.forget();
                    Answer::Done
                }
                Order::Reset { seed } => match self.profile.build(seed) {
                    Ok(device) => {
                        self.pacer.reset(device);
                        Answer::Done
                    }
                    Err(error) => Answer::Refused { why: error.to_string() },
                },
                Order::Bypass { on } => {
                    self.pacer.bypass(on);
                    Answer::Done
                }
            };
            talk.say(&answer)?;
        }
        Ok(())
    }

    fn sight(&self) -> Sight {
        let seen = self.pacer.seen();
        Sight {
            requests: seen.tally.requests,
            lateness: seen.tally.lateness(),
            outstanding: seen.outstanding,
            most_outstanding: seen.most_outstanding,
            busy: seen.view.busy,
            units: seen.view.units,
            cylinder: seen.view.cylinder,
            dirty: seen.view.dirty.bytes(),
            taken: self.data.taken(),
            spun: seen.tally.spun,
            processor: clock::processor_time(),
            real_time: seen.tally.urgency == Some(clock::Urgency::RealTime),
        }
    }
}

/// What a server has used of the processor, as a share of one over `span`.
pub fn processor_share(before: &Sight, after: &Sight, span: Nanos) -> f64 {
    after.processor.saturating_sub(before.processor).0 as f64 / (span.0.max(1)) as f64
}
