/** Asks once before somebody leaves a secret that they have neither copied nor said to have stored. */
export function guardUnread(): void {
  const unread = document.querySelector('[data-unread]');
  if (!unread) return;
  const reading = new AbortController();
  const { signal } = reading;
  const ask = (event: BeforeUnloadEvent) => {
    if (signal.aborted) return;
    event.preventDefault();
    reading.abort();
  };
  // Browsers ask nobody who has not touched the page.
  for (const touch of ['pointerdown', 'keydown'])
    addEventListener(touch, () => addEventListener('beforeunload', ask), { once: true, signal });
  for (const stored of ['copy', 'submit']) unread.addEventListener(stored, () => reading.abort(), { signal });
  // A browser that kept the page in its memory asks whether the secret is still to be seen.
  addEventListener('pageshow', ({ persisted }) => persisted && location.reload());
}
