/** A page that is looked at again is loaded anew if its session has ended: by its time, its key, or in another tab. */
export function watchSession(): void {
  const root = document.body.dataset['signedIn'];
  if (root === undefined) return;
  const check = async () => {
    if (document.visibilityState !== 'visible') return;
    const { status } = await fetch(`${root}session`, { redirect: 'error' }).catch(() => ({ status: 0 }));
    if (status === 401) location.reload();
  };
  document.addEventListener('visibilitychange', check);
  // A page that comes back from the browser's memory.
  addEventListener('pageshow', ({ persisted }) => persisted && check());
}
