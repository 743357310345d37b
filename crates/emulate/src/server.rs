//! The server: a process of its own that holds a device's data and model and answers the kernel.
//!
//! It is a process of its own because whoever makes load on the device may be killed while the kernel
//! waits for an answer: its threads then end only once the answer has come, so the answer must come
//! from somebody else. For the same reason it never opens anything on its own filesystem.

use crate::{
    clock,
    data::Data,
    filesystem::{self, Answer as Reply, Buffers, OneFile, Rest},
    fuse::Entries,
    pacer::{Deliver, Pacer, Waits},
    protocol::{Answer, Begin, Order, Sight, Talk, Way},
    queue::{Desk, Note, Queue, Slip},
    softirq::Softirqs,
    ublk::Tags,
};
use device::{Device, Profile, profile};
use fuser::{Session, SessionACL};
use std::{
    fs::File,
    io,
    num::NonZeroUsize,
    os::{
        fd::{AsFd, OwnedFd},
        unix::net::UnixStream,
    },
    path::Path,
    sync::Arc,
    thread,
};
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
        Way::FuseUring { point, tags } => match served.through_fuse_uring(&point, tags) {
            Ok((state, queue)) => {
                let data = Arc::clone(&state.data);
                state.go(talk, |pacer| queue.run(&pacer, &data))
            }
            Err(why) => talk.say(&Answer::Refused { why }),
        },
        Way::Ublk { index, tags, encoded } => match served.through_ublk(index, tags, encoded) {
            Ok((state, queue)) => {
                let data = Arc::clone(&state.data);
                state.go(talk, |pacer| queue.run(&pacer, &data))
            }
            Err(why) => talk.say(&Answer::Refused { why }),
        },
    }
}

/// What is served, whichever way.
struct Served {
    profile: Profile,
    device: Box<dyn Device>,
    data: Arc<Data>,
    pauses: bool,
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
        Ok(Served { profile, device, data: Arc::new(data), pauses: begin.pauses })
    }

    /// With a pacer that has a thread of its own, or is run by a queue's.
    fn paced<T: Send + 'static>(
        self,
        own_thread: bool,
        deliver: Deliver<T>,
    ) -> Result<State<T>, String> {
        let refused = |error: io::Error| format!("no thread or timer for pacing: {error}");
        let Served { profile, device, data, pauses } = self;
        let waits = Waits { spins: may_spin(), pauses };
        let mut pacer = Pacer::new(device, waits, deliver).map_err(refused)?;
        if own_thread {
            pacer.begin_thread().map_err(refused)?;
        }
        Ok(State { profile, data, pacer: Arc::new(pacer) })
    }

    fn through_fuse(self, point: &Path) -> Result<(State<Reply>, Session<OneFile>), String> {
        let buffers = Arc::new(Buffers::default());
        let its = Arc::clone(&buffers);
        let softirqs = Softirqs::new().map_err(|error| format!("a socket: {error}"))?;
        let deliver = Box::new(move |answer, inside| {
            its.answer(answer, inside);
            softirqs.run();
        });
        let state = self.paced(true, deliver)?;
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
    ) -> Result<(State<Slip>, Queue<Tags>), String> {
        let refused = |error: io::Error| format!("the queue of /dev/ublkc{index}: {error}");
        let (state, desk) = self.at_a_desk()?;
        let tags = Tags::open(index, tags, encoded).map_err(refused)?;
        let queue = Queue::open(tags, desk).map_err(refused)?;
        Ok((state, queue))
    }

    fn through_fuse_uring(
        self,
        point: &Path,
        tags: u32,
    ) -> Result<(State<Slip>, Queue<Entries>), String> {
        let refused = |error: io::Error| format!("FUSE on {}: {error}", point.display());
        let device = File::options().read(true).write(true).open("/dev/fuse").map_err(refused)?;
        let device = OwnedFd::from(device);
        filesystem::mount(point, device.as_fd()).map_err(refused)?;
        let same = || device.try_clone().map_err(refused);
        let config = filesystem::config(READERS);
        let rest = Session::from_fd(Rest, same()?, SessionACL::Owner, config).map_err(refused)?;
        let (state, desk) = self.at_a_desk()?;
        let entries = Entries::new(same()?, tags, state.data.size()).map_err(refused)?;
        let queue = Queue::open(entries, desk).map_err(refused)?;
        thread::Builder::new()
            .name("rest".to_owned())
            .spawn(move || rest.run())
            .map_err(refused)?;
        Ok((state, queue))
    }

    /// With a pacer that the thread of a queue runs.
    fn at_a_desk(self) -> Result<(State<Slip>, Arc<Desk>), String> {
        let desk = Arc::new(Desk::new().map_err(|error| format!("an eventfd: {error}"))?);
        let its = Arc::clone(&desk);
        let deliver = Box::new(move |slip: Slip, inside| its.put(Note::Answer(slip.told(inside))));
        Ok((self.paced(false, deliver)?, desk))
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
            spun_taken: seen.tally.taken,
            processor: clock::processor_time(),
            real_time: seen.tally.urgency == Some(clock::Urgency::RealTime),
        }
    }
}

/// For what share of the time that the pacing thread spun its processor was taken from it.
pub fn spun_taken_share(sight: &Sight) -> f64 {
    sight.spun_taken.0 as f64 / (sight.spun.0.max(1)) as f64
}

/// What a server has used of the processor, as a share of one over `span`.
pub fn processor_share(before: &Sight, after: &Sight, span: Nanos) -> f64 {
    after.processor.saturating_sub(before.processor).0 as f64 / (span.0.max(1)) as f64
}
