/** Asks once before somebody leaves a secret that they have neither copied nor said to have stored. */
export function guardUnread(): void {
  const unread = document.querySelector('[data-unread]');
  if (!unread) return;
  const leaving = new AbortController();
  const { signal } = leaving;
  addEventListener('beforeunload', (event) => event.preventDefault(), { once: true, signal });
  for (const stored of ['copy', 'submit']) unread.addEventListener(stored, () => leaving.abort(), { signal });
  // A browser that kept the page in its memory asks whether the secret is still to be seen.
  addEventListener('pageshow', ({ persisted }) => persisted && location.reload());
}
