import type { KnownCatalog } from './access-cells.ts';
import { AccessMatrix } from './access-matrix.tsx';
import { AccessQuestion, type AccessAnswer } from './access-question.tsx';
import { ParentKeys } from './parent-keys.tsx';
import type { KeyVisit } from './with-key.tsx';

const CATALOG = '{ permissions { roles { role permissions { resource actions } } resources } }';

/** What can be granted, if the person may know. @throws OperationFailed */
export async function askCatalog({ visit }: Pick<KeyVisit, 'visit'>): Promise<KnownCatalog | undefined> {
  if (!visit.may('PERMISSION:READ_ANY')) return undefined;
  return (await visit.ask<{ permissions: KnownCatalog }>(CATALOG)).permissions;
}

/** What a key may do, and through whom. */
export function AccessSection({
  here,
  catalog,
  asked,
}: {
  here: KeyVisit;
  catalog: KnownCatalog | undefined;
  asked: AccessAnswer | undefined;
}) {
  const { shown } = here;
  return (
    <section aria-labelledby="access">
      <h2 id="access">What it may do</h2>
      <p class="grants">
        Granted:{' '}
        {shown.grants.map((grant) => (
          <>
            <code class={shown.unknownGrants.includes(grant) ? 'unknown' : undefined}>{grant}</code>{' '}
          </>
        ))}
      </p>
      {shown.unknownGrants.length > 0 && (
        <p class="help">
          {`${shown.unknownGrants.join(', ')}: not declared here any more, so that it allows nothing.`}
        </p>
      )}
      <AccessMatrix shown={shown} catalog={catalog} />
      <ParentKeys here={here} />
      <AccessQuestion here={here} asked={asked} />
    </section>
  );
}
