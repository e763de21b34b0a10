import { addGrantsPickers } from './grants-picker.tsx';
import { addHistograms } from './histogram.ts';

keepFragment();
focusField();
watchSession();
addShortcuts();
addGrantsPickers();
addHistograms();
addCopyButtons();
addReadouts();
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

/** Browsers give no field the focus by `autofocus` where an address has a fragment. */
function focusField(): void {
  document.querySelector<HTMLElement>('[data-focus]')?.focus();
}

/** A button with `data-copy` copies the field of that id, and says so beside it. Without scripts it stays hidden. */
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
        said.textContent = 'Not copied: the browser does not allow it. The text is selected, copy it by the keyboard.';
      }
    });
  }
}

/** A list tells how many of its keys are selected, and selects all of them at once. */
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
      said.textContent = count === 0 ? 'None is selected.' : `${count} selected:`;
      for (const button of buttons) button.disabled = count === 0;
    };
    all.hidden = false;
    all.addEventListener('change', () => {
      for (const box of boxes) box.checked = all.checked;
      show();
    });
    form.addEventListener('change', show);
    // Browsers tick again what was ticked, for somebody who goes back.
    addEventListener('pageshow', show);
    show();
  }
}

/** A plot says what its column under the pointer stands for, in place of what browsers show after a while. */
function addReadouts(): void {
  for (const plot of document.querySelectorAll('[data-plot]')) {
    const readout = plot.querySelector<HTMLElement>('.readout')!;
    const charts = Array.from(plot.querySelectorAll('.chart svg'), (svg) => [...svg.querySelectorAll('.column')]);
    const said = charts[0]!.map((column) => column.querySelector('title')!.textContent);
    for (const column of charts.flat()) column.querySelector('title')!.remove();
    const show = (index: number) => {
      for (const columns of charts)
        for (const [at, column] of columns.entries()) column.classList.toggle('at', at === index);
      readout.textContent = said[index] ?? 'Point at a column for its numbers.';
    };
    readout.hidden = false;
    show(-1);
    plot.addEventListener('pointerover', ({ target }) => {
      const column = (target as Element).closest('.column');
      for (const columns of charts) if (column && columns.includes(column)) show(columns.indexOf(column));
    });
    plot.addEventListener('pointerleave', () => show(-1));
  }
}

/** A page that is looked at again is loaded anew if its session has ended: by its time, its key, or in another tab. */
function watchSession(): void {
  const { body } = document;
  const root = body.dataset['signedIn'];
  if (root === undefined) return;
  // A form that somebody has begun to fill in is taken along to where they sign in.
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
    // The answer to a form is not asked for again: a browser would want to send that once more.
    else if ('answer' in body.dataset) location.replace(`${root}sign-in`);
    else if (draft && isBegun) takeAlong(draft);
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

/** A field with `data-shortcut` gets the focus by that character, unless one is being typed elsewhere. */
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

/** Asks once before somebody leaves a secret that they have neither copied nor said to have stored. */
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
  // Browsers ask nobody who has not touched the page.
  for (const touch of ['pointerdown', 'keydown'])
    addEventListener(touch, () => addEventListener('beforeunload', ask), { once: true, signal });
  unread.addEventListener('submit', () => reading.abort(), { signal });
  unread.querySelector('#secret')?.addEventListener('copy', () => reading.abort(), { signal });
  // A browser that keeps the page in its memory has no secret there.
  addEventListener('pagehide', ({ persisted }) => {
    if (persisted) unread.textContent = 'A secret is shown only once.';
  });
}
