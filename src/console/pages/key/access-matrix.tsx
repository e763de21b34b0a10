import { type Cell, type KnownCatalog, type Row, buildRows } from './access-cells.ts';
import { SHOWN_ACTIONS, VERBS } from '../../parts/grants.ts';
import { formatCount } from './key-facts.tsx';
import type { ShownKey } from './shown-key.ts';

const SYMBOLS = { used: '●', unused: '○', taken: '×', none: '' } as const;

/** What a key may do: its resources and actions, by which grant, and whether it was used. */
export function AccessMatrix({ shown, catalog }: { shown: ShownKey; catalog: KnownCatalog | undefined }) {
  const rows = buildRows(shown, catalog);
  const without = catalog?.resources.filter((name) => !rows.some(({ resource }) => resource === name)) ?? [];
  return (
    <>
      {rows.length > 0 && <MatrixTable rows={rows} />}
      <p class="legend">
        <span>{SYMBOLS.used} may, and has</span> <span>{SYMBOLS.unused} may, and never has</span>{' '}
        <span>{SYMBOLS.taken} granted, but taken away by a parent key</span>
      </p>
      {without.length > 0 && (
        <details>
          <summary>{`No access to ${formatCount(without.length, 'other resource')}`}</summary>
          <p class="grants">
            {without.map((resource) => (
              <>
                <code>{resource}</code>{' '}
              </>
            ))}
          </p>
        </details>
      )}
    </>
  );
}

function MatrixTable({ rows }: { rows: readonly Row[] }) {
  return (
    <div class="scroll" role="region" aria-label="What it may do, by resource" tabindex={0}>
      <table class="matrix">
        <thead>
          <tr>
            <th scope="col" rowspan={2}>
              Resource
            </th>
            {VERBS.map((verb) => (
              <th scope="colgroup" colspan={2}>
                {verb.charAt(0) + verb.slice(1).toLowerCase()}
              </th>
            ))}
          </tr>
          <tr>
            {SHOWN_ACTIONS.map((action) => (
              <th scope="col">{action.split('_')[1]!.toLowerCase()}</th>
            ))}
          </tr>
        </thead>
        <tbody>
          {rows.map(({ resource, cells }) => (
            <tr>
              <th scope="row">
                <code>{resource}</code>
              </th>
              {cells.map((cell) => (
                <CellOf resource={resource} cell={cell} />
              ))}
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  );
}

function CellOf({ resource, cell }: { resource: string; cell: Cell }) {
  if (cell.state === 'none') return <td></td>;
  const words = describeCell(cell);
  return (
    <td class={cell.state} title={`${resource}:${cell.action}: ${words}`}>
      <span aria-hidden="true">{SYMBOLS[cell.state]}</span>
      {cell.grantedBy.length > 0 && <small aria-hidden="true"> {describeSource(cell)}</small>}
      <span class="hidden">{words}</span>
    </td>
  );
}

/** Where it comes from, in a word. */
function describeSource({ grantedBy }: Cell): string {
  return grantedBy.some((grant) => !grant.startsWith('role ')) ? 'itself' : 'role';
}

function describeCell({ state, grantedBy, takenBy }: Cell): string {
  const by = grantedBy.length > 0 ? ` by ${grantedBy.join(' and ')}` : '';
  if (state === 'taken') return `granted${by}, but taken away by ${takenBy}`;
  return `granted${by}, ${state === 'used' ? 'and used' : 'but never used'}`;
}
