//! A folder whose disk is full.

use super::*;

/// Keys of a server in a folder: eight sets of 10 bytes. Set `n` is of client `n % 4`; something was asked under the last three.
fn eight(dir: &Path) -> Registered {
    let config = KeysConfig { folder: Some(dir.to_owned()), ..KeysConfig::default() };
    let registered = Registered::new(&config, Arc::default()).unwrap();
    for n in 0..8 {
        registered.inner.folder.as_ref().unwrap().write(&[n; 32], &set(n, n % 4), b"some bytes").unwrap();
        let mut known = registered.inner.known();
        known.index.insert([n; 32], set(n, n % 4));
        if n > 4 {
            known.index.touch(&[n; 32], 100 + u64::from(n));
        }
    }
    registered
}

fn set(used: u8, owner: u8) -> Entry {
    Entry { params: [0; 32], owner: [owner; 16], bytes: 10, used: used.into(), asked: false }
}

fn files(dir: &Path) -> usize {
    let names = std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(".keys")).count()
}

#[test]
fn where_the_disk_is_full_keys_go_as_where_the_folder_is() {
    let dir = tempfile::tempdir().unwrap();
    let registered = eight(dir.path());
    let inner = &registered.inner;
    // A client's own go first, used or not; of others' those that nothing was asked under, and then those that were used longest ago.
    for (left, (owner, gone)) in
        (0..8).rev().zip([(1, 1), (1, 5), (1, 0), (9, 2), (9, 3), (9, 4), (9, 6), (9, 7)])
    {
        let full = || if files(dir.path()) > left { Err(io::ErrorKind::StorageFull.into()) } else { Ok(()) };
        assert_eq!(inner.make_room(&set(50, owner), full).unwrap(), [[gone; 32]]);
        assert_eq!((inner.known().index.held().count, files(dir.path())), (left, left));
    }
    let full = || Err(io::ErrorKind::StorageFull.into());
    assert_eq!(inner.make_room(&set(50, 1), full).unwrap_err().kind(), io::ErrorKind::StorageFull);
}

#[test]
fn a_disk_that_stays_full_costs_few_keys_and_another_error_none() {
    for (kind, left) in [
        (io::ErrorKind::StorageFull, 6),
        (io::ErrorKind::QuotaExceeded, 6),
        (io::ErrorKind::PermissionDenied, 8),
    ] {
        let dir = tempfile::tempdir().unwrap();
        let registered = eight(dir.path());
        let error = registered.inner.make_room(&set(50, 1), || Err(kind.into())).unwrap_err();
        assert_eq!((error.kind(), files(dir.path())), (kind, left));
    }
}

#[tokio::test]
async fn who_closes_it_is_done_and_another_server_has_the_folder() {
    let dir = tempfile::tempdir().unwrap();
    let registered = Arc::new(eight(dir.path()));
    let config = KeysConfig { folder: Some(dir.path().to_owned()), ..KeysConfig::default() };
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (began, has_begun) = tokio::sync::oneshot::channel();
    let at_work = tokio::spawn({
        let registered = registered.clone();
        async move {
            let work = move |_: &Inner| {
                let _ = began.send(());
                Ok(wait.recv().is_ok())
            };
            registered.blocking(work).await
        }
    });
    has_begun.await.unwrap();
    let mut closing = std::pin::pin!(registered.close());
    // As far as it comes by itself.
    let closed =
        std::future::poll_fn(|context| std::task::Poll::Ready(closing.as_mut().poll(context).is_ready()));
    assert!(!closed.await && Registered::new(&config, Arc::default()).is_err(), "somebody is at work");
    go.send(()).unwrap();
    closing.await;
    assert!(at_work.await.unwrap().unwrap());
    assert_eq!(registered.blocking(|_| Ok(())).await.unwrap_err().reason, Reason::Draining);
    let next = Registered::new(&config, Arc::default()).unwrap();
    assert_eq!(next.inner.known().index.held().count, 8);
}
