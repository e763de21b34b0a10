import { addGrantsPickers } from './grants-picker.tsx';
import { addHistograms } from './histogram.ts';

keepFragment();
focusField();
watchSession();
addShortcuts();
addGrantsPickers();
addHistograms();
addCopyButtons();
addSelections();
guardUnread();

/** Keeps the fragment across a sign-in: browsers send it to no server. */
function keepFragment(): void {
  const { hash } = location;
  if (hash === '') return;
  for (const field of document.querySelectorAll<HTMLInputElement>('input[data-next]'))
    if (field.value !== '') field.value += hash;
  for (const link of document.querySelectorAll<HTMLAnchorElement>('a[data-next]')) {
    const url = new URL(link.href);
    for (const [name, value] of url.searchParams) url.searchParams.set(name, value + hash);
    link.href = url.href;
  }
}

/** Browsers ignore `autofocus` if the address has a fragment. */
function focusField(): void {
  document.querySelector<HTMLElement>('[data-focus]')?.focus();
}

/** A button with `data-copy` copies the field with that id, and says so. It stays hidden without scripts. */
function addCopyButtons(): void {
  for (const button of document.querySelectorAll<HTMLButtonElement>('button[data-copy]')) {
    const place = document.querySelector<HTMLElement>(`#${button.dataset['copy']}`)!;
    const field = place instanceof HTMLInputElement ? place : undefined;
    const said = button.parentElement!.querySelector('[role=status]')!;
    const select = () => (field ? field.select() : getSelection()?.selectAllChildren(place));
    field?.addEventListener('focus', select);
    button.hidden = false;
    button.addEventListener('click', async () => {
      try {
        await navigator.clipboard.writeText(field?.value ?? place.textContent ?? '');
        said.textContent = 'Copied.';
        place.dispatchEvent(new Event('copy', { bubbles: true }));
      } catch {
        place.focus();
        select();
        said.textContent = 'The browser does not allow copying. The text is selected: copy it with the keyboard.';
      }
    });
  }
}

/** Shows how many keys of a list are selected, and selects all of them. */
function addSelections(): void {
  for (const form of document.querySelectorAll('[data-selection]')) {
    const boxes = [...form.querySelectorAll<HTMLInputElement>('input[name=id]')];
    const all = form.querySelector<HTMLInputElement>('[data-select-all]');
    const said = form.querySelector('[data-selected]');
    if (!all || !said) continue;
    const buttons = form.querySelectorAll<HTMLButtonElement>('button[name=change]');
    const show = () => {
      const count = boxes.filter(({ checked }) => checked).length;
      all.checked = count === boxes.length;
      all.indeterminate = count > 0 && !all.checked;
      said.textContent = count === 0 ? '0 selected' : `${count} selected:`;
      for (const button of buttons) button.disabled = count === 0;
    };
    all.hidden = false;
    all.addEventListener('change', () => {
      for (const box of boxes) box.checked = all.checked;
      show();
    });
    form.addEventListener('change', show);
    // Browsers restore ticked boxes after going back.
    addEventListener('pageshow', show);
    show();
  }
}

/** Reloads a page that someone returns to if its session has ended: by time, with its key, or in another tab. */
function watchSession(): void {
  const { body } = document;
  const root = body.dataset['signedIn'];
  if (root === undefined) return;
  // A form that was being filled in is kept across the sign-in.
  const draft = document.querySelector<HTMLFormElement>('form[data-draft]');
  let isBegun = false;
  draft?.addEventListener('input', () => (isBegun = true));
  const takeAlong = (form: HTMLFormElement) => {
    const step = document.createElement('input');
    Object.assign(step, { type: 'hidden', name: 'step', value: 'change' });
    form.append(step);
    form.submit();
  };
  const check = async () => {
    const { status } = await fetch(`${root}session`, { redirect: 'error' }).catch(() => ({ status: 0 }));
    if (status !== 401 && (status === 204 || !body.hidden)) body.hidden = false;
    // Reloading the answer to a form would make the browser ask to send it again.
    else if ('answer' in body.dataset) location.replace(`${root}sign-in`);
    else if (draft && isBegun) takeAlong(draft);
    else location.reload();
  };
  document.addEventListener(
    'visibilitychange',
    () => document.visibilityState === 'visible' && !body.hidden && check(),
  );
  // Browsers keep left pages in memory. Hide such a page until its session is known to be valid.
  addEventListener('pagehide', ({ persisted }) => (body.hidden = persisted));
  addEventListener('pageshow', ({ persisted }) => persisted && check());
}

/** Focuses the field with `data-shortcut` when that character is typed outside a field. */
function addShortcuts(): void {
  const fields = document.querySelectorAll<HTMLInputElement>('[data-shortcut]');
  document.addEventListener('keydown', (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if ((event.target as Element).closest('input, textarea, select')) return;
    for (const field of fields)
      if (field.dataset['shortcut'] === event.key) {
        event.preventDefault();
        field.focus();
      }
  });
}

/** Asks once before a person leaves a secret that they have neither copied nor confirmed as stored. */
function guardUnread(): void {
  const unread = document.querySelector('[data-unread]');
  if (!unread) return;
  const reading = new AbortController();
  const { signal } = reading;
  const ask = (event: BeforeUnloadEvent) => {
    if (signal.aborted) return;
    event.preventDefault();
    reading.abort();
  };
  // Browsers only ask after an interaction with the page.
  for (const touch of ['pointerdown', 'keydown'])
    addEventListener(touch, () => addEventListener('beforeunload', ask), { once: true, signal });
  unread.addEventListener('submit', () => reading.abort(), { signal });
  unread.querySelector('#secret')?.addEventListener('copy', () => reading.abort(), { signal });
  // Removes the secret from a page that the browser keeps in memory.
  addEventListener('pagehide', ({ persisted }) => {
    if (persisted) unread.textContent = 'A secret is shown only once.';
  });
}
