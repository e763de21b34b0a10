import { Status } from '../../parts/status.tsx';
import { Time } from '../../parts/time.tsx';
import { formatCount } from './key-facts.tsx';
import type { ChildKeys } from './shown-key.ts';
import type { KeyVisit } from './with-key.tsx';

/** The keys that a key created, and those that they created. */
export function ChildKeysSection({ here }: { here: KeyVisit }) {
  const { descendants } = here.shown;
  if (descendants.count === 0) return null;
  return (
    <section aria-labelledby="child-keys">
      <h2 id="child-keys">Child keys</h2>
      <p class="help">They can do no more than this key, and end with it.</p>
      <ChildKeysTable here={here} />
    </section>
  );
}

/** The child keys of a key, as far as they may be read. */
export function ChildKeysTable({ here: { shown, visit } }: { here: KeyVisit }) {
  const { keys, count, hasMore } = shown.descendants;
  const names = new Map([shown, ...keys].map(({ id, name }) => [id, name]));
  return (
    <>
      {keys.length > 0 && (
        <table class="list">
          <thead>
            <tr>
              <th scope="col">Name</th>
              <th scope="col">Status</th>
              <th scope="col">Created by</th>
              <th scope="col">Last used</th>
            </tr>
          </thead>
          <tbody>
            {keys.map((key) => (
              <tr>
                <th scope="row">
                  <a href={`${visit.root}keys/${key.id}`}>{key.name}</a>
                </th>
                <td data-label="Status">
                  <Status is={key.status} />
                </td>
                <td data-label="Created by">{names.get(key.createdBy ?? '') ?? <span class="faint">–</span>}</td>
                <td data-label="Last used">
                  <Time at={key.lastUsedAt} now={visit.now} />
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {count > keys.length && (
        <p class="faint">
          {keys.length > 0 && 'And '}
          {formatCount(count - keys.length, 'key')} that you may not read.
        </p>
      )}
      {hasMore && <p class="faint">And more.</p>}
    </>
  );
}

/** How many keys there are: `3 keys`, `more than 50 keys`. */
export function formatKeyCount({ count, hasMore }: ChildKeys, noun = 'key'): string {
  return hasMore ? `more than ${formatCount(count, noun)}` : formatCount(count, noun);
}
