import type { Child } from 'hono/jsx';
import { Time } from '../../parts/time.tsx';
import type { KeyVisit } from './with-key.tsx';

/** What is known of a key. @param creatorName null if it may not be read */
export function KeyFacts({ here, creatorName }: { here: KeyVisit; creatorName: string | null }) {
  const { shown, visit } = here;
  const { now, root } = visit;
  return (
    <dl class="facts">
      <Fact name="Secret">
        <code>{shown.prefix}</code>
      </Fact>
      <Fact name="Created">
        <Time at={shown.createdAt} now={now} />
        {' by '}
        {shown.createdBy === null ? (
          'the operator'
        ) : (
          <a href={`${root}keys/${shown.createdBy}`}>{creatorName ?? 'another key'}</a>
        )}
      </Fact>
      <Fact name="Expires">
        <Time at={shown.expiresAt} now={now} />
      </Fact>
      {shown.disabledAt !== null && (
        <Fact name="Disabled">
          <Time at={shown.disabledAt} now={now} />
        </Fact>
      )}
      <Fact name="Last used">
        <Time at={shown.lastUsedAt} now={now} />
        {shown.uses > 0 && <span class="faint">{`, ${formatCount(shown.uses, 'use')} in all`}</span>}
      </Fact>
      <Fact name="Limits">
        {shown.limits.length > 0 ? shown.limits.join(', ') : <span class="faint">none of its own</span>}
      </Fact>
      <Fact name="Used from">
        {shown.allowFrom === null ? (
          <span class="faint">anywhere</span>
        ) : (
          shown.allowFrom.map((network) => <code>{network} </code>)
        )}
      </Fact>
      {shown.managed && (
        <Fact name="Managed">by an apply: the next one may undo what is changed here, or delete the key</Fact>
      )}
    </dl>
  );
}

function Fact({ name, children }: { name: string; children?: Child }) {
  return (
    <>
      <dt>{name}</dt>
      <dd>{children}</dd>
    </>
  );
}

/** `1 use`, `1,200 uses`. */
export function formatCount(count: number, what: string): string {
  return `${count.toLocaleString('en')} ${what}${count === 1 ? '' : 's'}`;
}
