import { render, useEffect, useState } from 'hono/jsx/dom';
import { PermissionWords } from '../permission-words.tsx';

/** Helps with each choice of grants: filters, counts, and says what they come to. The fields stay those of the page. */
export function addGrantsPickers(): void {
  for (const picker of document.querySelectorAll<HTMLElement>('[data-grants]')) help(picker);
}

/** What is chosen. */
interface Choice {
  readonly permissions: readonly string[];
  readonly roles: readonly Role[];
}

interface Role {
  readonly name: string;
  /** What it includes; undefined if that is not known. */
  readonly includes: readonly string[] | undefined;
}

function help(picker: HTMLElement): void {
  const boxes = [...picker.querySelectorAll<HTMLInputElement>('input[type=checkbox]')];
  const permissions = boxes.filter(({ value }) => value.includes(':'));
  const roles = boxes.filter(({ value }) => !value.includes(':'));
  const rows = [...picker.querySelectorAll<HTMLElement>('tbody tr')];
  /** Those that were ticked for their own sake, not by another one that includes them. */
  const ticked = new Set(permissions.filter(({ checked }) => checked).map(({ value }) => value));
  const anyOf = new Map(permissions.map((box) => [box.value.replace(/_ANY$/, '_OWN'), box]));

  const read = (): Choice => ({
    permissions: permissions.filter(({ checked }) => checked).map(({ value }) => value),
    roles: roles
      .filter(({ checked }) => checked)
      .map(({ value, dataset }) => ({ name: value, includes: dataset['includes']?.split(' ') })),
  });
  /** Who may do it to any may do it to its own. */
  const include = () => {
    for (const own of permissions.filter(({ value }) => value.endsWith('_OWN'))) {
      const any = anyOf.get(own.value);
      own.disabled = any !== undefined && any !== own && any.checked;
      own.checked = own.disabled || ticked.has(own.value);
    }
  };
  let tell: (choice: Choice) => void = () => {};
  let count: (choice: Choice) => void = () => {};
  picker.addEventListener('change', ({ target }) => {
    const { checked, value } = target as HTMLInputElement;
    if (checked) ticked.add(value);
    else ticked.delete(value);
    include();
    tell(read());
    count(read());
  });
  include();

  const filter = (text: string, onlyChosen: boolean) => {
    const words = text.toLowerCase().split(/\s+/);
    for (const row of rows) {
      const own = [...row.querySelectorAll<HTMLInputElement>('input')];
      const label = own
        .map((box) => box.getAttribute('aria-label'))
        .join(' ')
        .toLowerCase();
      const isChosen = own.some(({ checked }) => checked);
      row.hidden = !words.every((word) => label.includes(word)) || (onlyChosen && !isChosen);
    }
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
          placeholder="Filter, such as docker read"
          onInput={({ target }: Event) => setText((target as HTMLInputElement).value)}
          // Enter would send the form.
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

  function Sum() {
    const [choice, setChoice] = useState(read());
    tell = setChoice;
    const held = new Set(choice.permissions);
    return (
      <section class="sum">
        <h2>In all, it may</h2>
        <PermissionWords permissions={choice.permissions} />
        {choice.roles.map(({ name, includes }) => (
          <RoleAdds name={name} added={includes?.filter((permission) => !held.has(permission))} />
        ))}
      </section>
    );
  }

  render(<Tools />, picker.querySelector<HTMLElement>('[data-tools]')!);
  render(<Sum />, picker.querySelector<HTMLElement>('[data-sum]')!);
}

function RoleAdds({ name, added }: { name: string; added: readonly string[] | undefined }) {
  if (added === undefined)
    return (
      <p>
        and what the role <code>{name}</code> includes
      </p>
    );
  return (
    <div>
      <p>
        The role <code>{name}</code> {added.length === 0 ? 'adds nothing to that.' : 'adds:'}
      </p>
      {added.length > 0 && <PermissionWords permissions={added} />}
    </div>
  );
}
