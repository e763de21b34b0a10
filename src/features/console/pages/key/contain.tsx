import type { Pages, Visit } from '../../visit.tsx';
import { type Change, Changes } from '../../parts/audit-entries.tsx';
import { Card, Panel } from '../../parts/layout.tsx';
import { Done, Time, Warning, formatCount, KeyLink, LinkButton } from '../../parts/notice.tsx';
import { OnceOnly } from '../../sent-form.tsx';
import type { IssuedChange } from './shown-key.ts';

const CONTAIN = `mutation Contain($input: ContainKeyInput!) {
  containKey(input: $input) {
    keyId name exists
    issued { name keyId what at disabled }
    changes { name keyId changes { field before after } }
    requests { clientName keyName }
  }
}`;

/** The effects of containing a key: see `ContainedKey` of the schema. */
interface Contained {
  readonly keyId: string;
  readonly name: string;
  readonly exists: boolean;
  readonly issued: readonly IssuedChange[];
  readonly changes: readonly { name: string; keyId: string; changes: readonly Change[] }[];
  readonly requests: readonly { clientName: string; keyName: string }[];
}

/** Adds the page that shows what containing a key would undo, and then does it. The key can already be deleted. */
export function addContainment(pages: Pages): void {
  const contain = (visit: Visit, dryRun: boolean) =>
    visit.ask<Contained>(CONTAIN, { input: { id: visit.param('id'), dryRun } });
  pages.get('keys/:id/contain', async (visit) => showPlan(visit, await contain(visit, true)));
  pages.post('keys/:id/contain', async (visit) => {
    const done = await contain(visit, false);
    return visit.done(
      'Contained',
      <Panel width="medium" title="Contained" back={wayBack(visit, done)}>
        <Done>{countsOf(done, false)}. If a key has lost its only secret, rotate it before you enable it.</Done>
        <ChangedKeys visit={visit} contained={done} />
      </Panel>,
    );
  });
}

/** Changes that a key made to other keys and that are still in effect. */
export function IssuedSection({ visit, issued }: { visit: Visit; issued: readonly IssuedChange[] }) {
  if (issued.length === 0) return null;
  return (
    <Card id="issued" title="Changes to other keys">
      <p class="help">They stay in effect without this key. If it leaked, someone else may have made them.</p>
      <ul>
        {issued.map(({ name, keyId, what, at, disabled }) => (
          <li>
            {WORDS[what]} <KeyLink root={visit.root} id={keyId} name={name} />
            {disabled && ' (disabled)'}{' '}
            <span class="faint">
              <Time at={at} now={visit.now} />
            </span>
          </li>
        ))}
      </ul>
    </Card>
  );
}

const WORDS: Readonly<Record<IssuedChange['what'], string>> = {
  SECRET: 'Issued a secret for',
  WIDENING: 'Gave more access to',
  ENABLING: 'Enabled',
  APPROVAL: 'Approved a request that will create',
  ADOPTION: 'Created (since detached)',
  CREATION: 'Created, using a secret that it issued for another key,',
};

function showPlan(visit: Visit, plan: Contained): Promise<Response> {
  const isEmpty = plan.changes.length + plan.requests.length === 0;
  const back = wayBack(visit, plan);
  return visit.page(
    `Contain ${plan.name}`,
    <Panel width="medium" title={`Contain ${plan.name}?`} back={back}>
      <Warning>
        Use this if the key leaked. It disables the key with all its child keys, and undoes their changes to other keys.
        Anything that uses these keys may stop working.{' '}
        {!isEmpty && <strong>{`This will ${countsOf(plan, true)}.`}</strong>}
        {plan.changes.some(({ keyId }) => visit.principal.chain.keys.some(({ id }) => id === keyId)) &&
          ' Your own key is among them: you may be signed out.'}
      </Warning>
      <IssuedSection visit={visit} issued={plan.issued} />
      <ChangedKeys visit={visit} contained={plan} isPlan />
      {isEmpty ? (
        <p>There is nothing to undo.</p>
      ) : (
        <form method="post" action={`${visit.root}keys/${plan.keyId}/contain`} class="actions">
          <OnceOnly />
          <button class="danger">Contain</button>
          <LinkButton to={back.to}>Cancel</LinkButton>
        </form>
      )}
    </Panel>,
  );
}

function wayBack({ root }: Visit, { exists, keyId, name }: Contained) {
  return exists ? { to: `${root}keys/${keyId}`, name } : { to: `${root}keys`, name: 'All keys' };
}

/** Numbers of the changes, once made, or as the end of a sentence that begins with "this will". */
function countsOf({ changes, requests }: Contained, isPlan: boolean): string {
  const [disabled, others] = [changes.filter(isDisabled), changes.filter((change) => !isOnlyDisabled(change))];
  const [keys, otherKeys] = [formatCount(disabled.length, 'key'), formatCount(others.length, 'key')];
  const cancelled = formatCount(requests.length, 'request');
  const parts = [
    disabled.length > 0 && (isPlan ? `disable ${keys}` : `${keys} disabled`),
    others.length > 0 && (isPlan ? `change ${otherKeys} in other ways` : `${otherKeys} changed in other ways`),
    requests.length > 0 && (isPlan ? `cancel ${cancelled}` : `${cancelled} cancelled`),
  ];
  return parts.filter(Boolean).join(', ');
}

type ContainedChange = Contained['changes'][number];

function isDisabled({ changes }: ContainedChange): boolean {
  return changes.some(({ field, after }) => field === 'enabled' && after !== 'true');
}

function isOnlyDisabled(change: ContainedChange): boolean {
  return isDisabled(change) && change.changes.length === 1;
}

function ChangedKeys({ visit, contained, isPlan = false }: { visit: Visit; contained: Contained; isPlan?: boolean }) {
  const { changes, requests } = contained;
  if (changes.length + requests.length === 0) return null;
  const disabled = changes.filter(isOnlyDisabled);
  return (
    <section aria-labelledby="changes">
      <h2 id="changes">{isPlan ? 'What will change' : 'What has changed'}</h2>
      <ul>
        {changes
          .filter((change) => !isOnlyDisabled(change))
          .map(({ name, keyId, changes: fields }) => (
            <li>
              <a href={`${visit.root}keys/${keyId}`}>{name}</a>
              <Changes changes={fields} />
            </li>
          ))}
        {requests.map(({ clientName, keyName }) => (
          <li>
            The request by {clientName} for {keyName} {isPlan ? 'will be' : 'was'} cancelled
          </li>
        ))}
      </ul>
      {disabled.length > 0 && (
        <details open={disabled.length <= SHOWN_KEYS}>
          <summary>{`${formatCount(disabled.length, 'key')} ${isPlan ? 'to disable' : 'disabled'}`}</summary>
          <ul class="rows">
            {disabled.map(({ name, keyId }) => (
              <li>
                <a href={`${visit.root}keys/${keyId}`}>{name}</a>
              </li>
            ))}
          </ul>
        </details>
      )}
    </section>
  );
}

/** A longer list of keys is folded. */
const SHOWN_KEYS = 20;
