/** A page that is looked at again is loaded anew if its session has ended: by its time, its key, or in another tab. */
export function watchSession(): void {
  const { body } = document;
  const root = body.dataset['signedIn'];
  if (root === undefined) return;
  const check = async () => {
    const { status } = await fetch(`${root}session`, { redirect: 'error' }).catch(() => ({ status: 0 }));
    if (status !== 401 && (status === 204 || !body.hidden)) body.hidden = false;
    // The answer to a form is not asked for again: a browser would want to send that once more.
    else if ('answer' in body.dataset) location.replace(`${root}sign-in`);
    else location.reload();
  };
  document.addEventListener(
    'visibilitychange',
    () => document.visibilityState === 'visible' && !body.hidden && check(),
  );
  // Browsers keep pages that are left in their memory. Nobody sees one again before its session is found to go on.
  addEventListener('pagehide', ({ persisted }) => (body.hidden = persisted));
  addEventListener('pageshow', ({ persisted }) => persisted && check());
}
