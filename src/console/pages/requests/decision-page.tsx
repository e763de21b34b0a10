import { meaningOfPermission } from '../../../keys/permissions/meanings.ts';
import {
  defaultExpiry,
  type ExpiryBounds,
  type ExpiryChoice,
  ExpiryField,
  isWithin,
} from '../../parts/expiry-field.tsx';
import { type ChosenGrants, FIELDS, type GrantableRole, permissionsOf, WITHHELD } from '../../parts/grants.ts';
import { Done, Problem } from '../../parts/notice.tsx';
import { Time } from '../../parts/time.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import type { Visit } from '../../visit.tsx';
import { type AskedGrantable, NO_MORE_KEYS } from '../grantable.ts';
import type { Request } from './request.ts';

/** The choice of the end that the application asks for. */
export const ASKED = 'asked';

/** What somebody has chosen to grant, and for how long. */
export interface Choice extends ChosenGrants, ExpiryChoice {}

/** Why a decision was not taken. */
export interface DecisionIssue {
  readonly message?: string;
  /** What is wrong with the end. */
  readonly expiry?: string;
}

/** An item that an application asks for. */
interface Item {
  readonly field: string;
  readonly value: string;
  readonly meaning: string;
  /** Why it cannot be granted; undefined if it can. */
  readonly whyNot: string | undefined;
}

/** Shows what an application asks for, of which somebody may grant less. */
export function DecisionPage({
  visit: { root, now },
  code,
  request,
  roles,
  grantable,
  bounds,
  chosen,
  wrong,
}: {
  visit: Visit;
  code: string;
  request: Request;
  roles: readonly GrantableRole[];
  grantable: AskedGrantable;
  bounds: ExpiryBounds;
  /** Undefined before somebody has chosen: what is asked for, as far as it can be granted. */
  chosen: Choice | undefined;
  wrong: DecisionIssue | undefined;
}) {
  const { clientName, clientId, address, expiresAt, keyExpiresIn } = request;
  const items = itemsOf(request, roles, grantable);
  const isChosen = ({ value }: Item) =>
    chosen === undefined || chosen.roles.includes(value) || chosen.permissions.includes(value);
  const asked = keyExpiresIn !== null && isWithin(keyExpiresIn, bounds) ? keyExpiresIn : undefined;
  const expiry = chosen ?? (asked === undefined ? defaultExpiry(bounds) : { expiry: ASKED, date: '' });
  return (
    <>
      <div class="head">
        <h1>{clientName} asks for a key</h1>
      </div>
      {wrong?.message !== undefined && <Problem>{wrong.message}</Problem>}
      {grantable.reason !== null && <Problem>You cannot agree: {grantable.reason}</Problem>}
      {grantable.creatable === 0 && <Problem>{NO_MORE_KEYS}</Problem>}
      <dl class="facts">
        <dt>Application</dt>
        <dd>
          {clientName} <code class="faint">{clientId}</code>
        </dd>
        <dt>It asks from</dt>
        <dd>{address ?? 'an unknown address'}</dd>
        <dt>Code</dt>
        <dd>
          <code>{code.toUpperCase()}</code>: go on only if you have just started {clientName}, and it shows this code
        </dd>
        <dt>The request ends</dt>
        <dd>
          <Time at={expiresAt} now={now} />
        </dd>
      </dl>
      <form method="post" action={`${root}requests/decide`} class="sheet">
        <OnceOnly />
        <input type="hidden" name="code" value={code} />
        <fieldset>
          <legend>What the key may do</legend>
          {items.map((item) => (
            <label class="choice">
              <input
                type="checkbox"
                name={item.field}
                value={item.value}
                checked={item.whyNot === undefined && isChosen(item)}
                disabled={item.whyNot !== undefined}
              />
              <span>
                <code>{item.value}</code> {item.meaning}
                {item.whyNot !== undefined && <strong> {item.whyNot}</strong>}
              </span>
            </label>
          ))}
        </fieldset>
        <ExpiryField
          bounds={bounds}
          chosen={expiry}
          problem={wrong?.expiry}
          first={asked === undefined ? undefined : [ASKED, `After ${asked}, as it asks for`]}
          mayNeverEnd={keyExpiresIn === null}
        />
        <p class="help">It is a child key of yours: it does no more than yours may, and ends with it.</p>
        <p class="actions">
          {grantable.reason === null && (
            <button class="primary" name="decision" value="agree">
              Agree
            </button>
          )}
          <button class="danger" name="decision" value="refuse" formnovalidate>
            Refuse
          </button>
        </p>
      </form>
    </>
  );
}

/** What became of a request that somebody has agreed to. */
export function AgreedPage({ root, now, request }: { root: string; now: number; request: Request }) {
  const { clientName, keyName, expiresAt } = request;
  return (
    <>
      <div class="head">
        <h1>Agreed</h1>
      </div>
      <Done>
        {clientName} gets its key as soon as it asks again: you can go back to it. Its request ends{' '}
        <Time at={expiresAt} now={now} />.
      </Done>
      <p>
        The key is called <strong>{keyName}</strong>
        {'. '}
        <a href={`${root}keys?${new URLSearchParams({ search: keyName ?? '' }).toString()}`}>Look for it</a>
        {' · '}
        <a href={`${root}requests`}>Requests</a>
      </p>
    </>
  );
}

function itemsOf(request: Request, roles: readonly GrantableRole[], grantable: AskedGrantable): Item[] {
  const [heldRoles, held] = [grantable.roles.map(({ role }) => role), new Set(permissionsOf(grantable.permissions))];
  const whyNot = (grant: string) => (grantable.withheld.includes(grant) ? WITHHELD : 'Your key cannot grant it.');
  return [
    ...request.roles.map((value) => ({
      field: FIELDS.role,
      value,
      meaning: roles.find(({ role }) => role === value)?.description ?? 'A role of this installation.',
      whyNot: heldRoles.includes(value) ? undefined : whyNot(value),
    })),
    ...permissionsOf(request.permissions).map((value) => ({
      field: FIELDS.permission,
      value,
      meaning: meaningOfPermission(value),
      whyNot: held.has(value) ? undefined : whyNot(value),
    })),
  ];
}
