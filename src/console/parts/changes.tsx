import { MAX_DESCRIPTION_LENGTH } from '../../keys/key/index.ts';
import { formatDuration, printable, readDate } from '../../keys/basics/index.ts';
import { exactTime } from './time.tsx';

/** A field that was changed, as GraphQL has it: both values as JSON. */
export interface Change {
  readonly field: string;
  readonly before: string | null;
  readonly after: string | null;
}

/** What was changed, field by field. Of a key that was created or deleted, what it had. */
export function Changes({ changes }: { changes: readonly Change[] }) {
  const shown = changes.filter(({ before, after }) => !isEmpty(before) || !isEmpty(after));
  if (shown.length === 0) return <span class="faint">–</span>;
  return (
    <ul class="changes">
      {shown.map(({ field, before, after }) => (
        <li>
          <span class="faint">{wordsOf(field)}</span> {!isEmpty(before) && <del>{textOf(before)}</del>}
          {!isEmpty(before) && !isEmpty(after) && ' → '}
          {!isEmpty(after) && <ins>{textOf(after)}</ins>}
        </li>
      ))}
    </ul>
  );
}

function isEmpty(json: string | null): boolean {
  return json === null || json === 'null' || json === '[]' || json === 'false';
}

/** `expiresAt` is "expires at". */
function wordsOf(field: string): string {
  return field.replaceAll(/[A-Z]/g, (letter) => ` ${letter.toLowerCase()}`);
}

function textOf(json: string | null): string {
  return valueText(JSON.parse(json ?? 'null'));
}

function valueText(value: unknown, field = ''): string {
  if (typeof value === 'string')
    return readDate(value) === undefined ? printable(value, MAX_DESCRIPTION_LENGTH) : exactTime(value);
  if (field === 'grace' && typeof value === 'number') return formatDuration(value);
  if (Array.isArray(value)) return value.map((each) => valueText(each)).join(', ');
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const set = Object.entries(value).filter(([, each]) => each !== null);
  return set.map(([name, each]) => `${wordsOf(name)} ${valueText(each, name)}`).join(', ');
}
