import { render, useEffect, useState } from 'hono/jsx/dom';
import { accessField, CUSTOM, levelOf, levelsOf } from '../access-levels.ts';
import { KeySum, type SummedRole } from '../key-sum.tsx';

/** Adds a filter, a count and a summary to each permission picker. The fields stay those of the page. */
export function addGrantsPickers(): void {
  for (const picker of document.querySelectorAll<HTMLElement>('[data-grants]')) help(picker);
}

/** Chosen permissions and roles. */
interface Choice {
  readonly permissions: readonly string[];
  readonly roles: readonly SummedRole[];
}

function help(picker: HTMLElement): void {
  const form = picker.closest('form')!;
  const boxes = [...picker.querySelectorAll<HTMLInputElement>('input[type=checkbox]')];
  const permissions = boxes.filter(({ value }) => value.includes(':'));
  const roles = boxes.filter(({ value }) => !value.includes(':'));
  const rows = [...picker.querySelectorAll<HTMLElement>('.row')].map((element) => new AccessRow(element));
  /** Permissions ticked directly, not because another one includes them. */
  const ticked = new Set(permissions.filter(({ checked }) => checked).map(({ value }) => value));
  const anyOf = new Map(permissions.map((box) => [box.value.replace(/_ANY$/, '_OWN'), box]));

  const read = (): Choice => ({
    permissions: permissions.filter(({ checked }) => checked).map(({ value }) => value),
    roles: roles
      .filter(({ checked }) => checked)
      .map(({ value, dataset }) => ({ name: value, includes: dataset['includes']?.split(' ') })),
  });
  /** ANY includes OWN. */
  const include = () => {
    for (const own of permissions.filter(({ value }) => value.endsWith('_OWN'))) {
      const any = anyOf.get(own.value);
      own.disabled = any !== undefined && any !== own && any.checked;
      own.checked = own.disabled || ticked.has(own.value);
    }
  };
  let tell: () => void = () => {};
  let count: (choice: Choice) => void = () => {};
  const changed = () => {
    include();
    tell();
    count(read());
  };
  /** Replaces the ticked actions of a row. */
  const tick = (row: AccessRow, actions: readonly string[]) => {
    for (const box of row.boxes) {
      box.checked = actions.includes(box.value.split(':')[1]!);
      if (box.checked) ticked.add(box.value);
      else ticked.delete(box.value);
    }
  };
  form.addEventListener('input', () => tell());
  picker.addEventListener('change', ({ target }) => {
    const { type, checked, value } = target as HTMLInputElement;
    if (type === 'radio') {
      const row = rows.find(({ radios }) => radios.includes(target as HTMLInputElement))!;
      if (value !== CUSTOM) tick(row, value.split(' '));
    } else if (checked) ticked.add(value);
    else ticked.delete(value);
    changed();
  });
  for (const preset of picker.querySelectorAll<HTMLButtonElement>('button[data-permissions]'))
    preset.addEventListener('click', (event) => {
      event.preventDefault();
      const wanted = preset.dataset['permissions']!.split(' ');
      for (const row of rows) {
        const actions = wanted.flatMap((one) => (one.startsWith(`${row.resource}:`) ? one.split(':')[1]! : []));
        tick(row, actions);
        row.choose(actions);
      }
      changed();
      form.dispatchEvent(new Event('input'));
    });
  include();
  const keepStop = addRoving(rows);

  const filter = (text: string, onlyChosen: boolean) => {
    const words = text.toLowerCase().split(/\s+/);
    for (const { element, boxes: own } of rows) {
      const label = own
        .map((box) => box.getAttribute('aria-label'))
        .join(' ')
        .toLowerCase();
      const isChosen = own.some(({ checked }) => checked);
      element.hidden = !words.every((word) => label.includes(word)) || (onlyChosen && !isChosen);
    }
    keepStop();
  };

  function Tools() {
    const [choice, setChoice] = useState(read());
    const [text, setText] = useState('');
    const [onlyChosen, setOnlyChosen] = useState(false);
    count = setChoice;
    const chosen = choice.permissions.filter((permission) => ticked.has(permission)).length + choice.roles.length;
    useEffect(() => filter(text, onlyChosen), [text, onlyChosen]);
    return (
      <div class="filter">
        <input
          id="permission-filter"
          type="search"
          aria-label="Filter the permissions"
          placeholder="Filter by resource or action"
          onInput={({ target }: Event) => setText((target as HTMLInputElement).value)}
          // Enter would submit the form.
          onKeyDown={(event: KeyboardEvent) => event.key === 'Enter' && event.preventDefault()}
        />
        <button type="button" aria-pressed={onlyChosen ? 'true' : 'false'} onClick={() => setOnlyChosen(!onlyChosen)}>
          {`Chosen: ${chosen}`}
        </button>
        <span role="status" class="hidden">
          {`${chosen} chosen`}
        </span>
      </div>
    );
  }

  const sum = document.querySelector<HTMLElement>('[data-sum]');
  function Sum() {
    const [, setTold] = useState(0);
    tell = () => setTold((told) => told + 1);
    const list = form.querySelector<HTMLSelectElement>('select[name=expiry]');
    return (
      <KeySum
        name={form.querySelector<HTMLInputElement>('[name=name]')?.value ?? ''}
        expiry={list?.selectedOptions[0]?.textContent ?? ''}
        {...read()}
      />
    );
  }

  render(<Tools />, picker.querySelector<HTMLElement>('[data-tools]')!);
  if (sum) render(<Sum />, sum);
}

/** A resource with its access levels. */
class AccessRow {
  readonly element: HTMLElement;
  readonly boxes: readonly HTMLInputElement[];
  readonly radios: readonly HTMLInputElement[];

  constructor(element: HTMLElement) {
    this.element = element;
    this.boxes = [...element.querySelectorAll<HTMLInputElement>('[type=checkbox]')];
    this.radios = [...element.querySelectorAll<HTMLInputElement>('[type=radio]')];
  }

  get resource(): string {
    return this.radios[0]!.name.slice(accessField('').length);
  }

  /** The chosen level, which gets the focus. */
  get chosen(): HTMLInputElement {
    return this.radios.find(({ checked }) => checked) ?? this.radios[0]!;
  }

  /** Chooses the level of some actions. */
  choose(actions: readonly string[]): void {
    const levels = levelsOf(this.boxes.map(({ value }) => value.split(':')[1]!));
    const level = levelOf(actions, levels);
    const index = level ? levels.indexOf(level) : this.radios.length - 1;
    this.radios[index]!.checked = true;
  }
}

/**
 * Makes all levels one tab stop: up and down move between resources, left and right between levels.
 * @returns a function that moves the tab stop to a visible row after rows were hidden
 */
function addRoving(rows: readonly AccessRow[]): () => void {
  let stopped = rows[0];
  const setStop = (stop: AccessRow | undefined) => {
    stopped = stop;
    for (const row of rows) for (const radio of row.radios) radio.tabIndex = row === stop ? 0 : -1;
  };
  setStop(rows[0]);
  for (const row of rows) {
    row.element.addEventListener('focusin', ({ target }) => {
      if ((target as HTMLInputElement).type === 'radio') setStop(row);
    });
    for (const radio of row.radios)
      radio.addEventListener('keydown', (event) => {
        const shown = rows.filter(({ element }) => !element.hidden);
        const here = shown.indexOf(row);
        const steps: Readonly<Record<string, number>> = {
          ArrowUp: Math.max(0, here - 1),
          ArrowDown: Math.min(shown.length - 1, here + 1),
          Home: 0,
          End: shown.length - 1,
        };
        const next = steps[event.key];
        if (next === undefined) return;
        event.preventDefault();
        shown[next]!.chosen.focus();
      });
  }
  return () => {
    if (stopped?.element.hidden) setStop(rows.find(({ element }) => !element.hidden));
  };
}
