import type { Pages } from '../page-routes.ts';

const QUERY = `{
  limits {
    defaultKeyLimits failedCredentials
    request { cost nodes characters timeMs errors pageSize tokens nesting depth fields aliases directives fragments }
  }
}`;

interface ServiceLimits {
  defaultKeyLimits: string[];
  failedCredentials: string | null;
  request: Readonly<Record<keyof typeof REQUEST_LIMITS, number | null>>;
}

/** The limits of one GraphQL request, in words. */
const REQUEST_LIMITS = {
  cost: 'Cost, as the schema counts it',
  timeMs: 'Time, in milliseconds',
  nodes: 'Fields and items that are resolved',
  characters: 'Characters of the answer',
  pageSize: 'Items of a page',
  depth: 'Levels of fields',
  fields: 'Fields',
  aliases: 'Aliases',
  directives: 'Directives',
  fragments: 'Fragments',
  tokens: 'Tokens of the document',
  nesting: 'Levels of brackets',
  errors: 'Errors of the answer',
} as const;

/** Adds what all keys and requests are held to. */
export function addLimits(pages: Pages): void {
  pages.get('limits', async (visit) => {
    const { limits } = await visit.ask<{ limits: ServiceLimits }>(QUERY);
    return visit.page('Limits', <Limits limits={limits} />);
  });
}

function Limits({ limits: { defaultKeyLimits, failedCredentials, request } }: { limits: ServiceLimits }) {
  return (
    <>
      <div class="head">
        <h1>Limits</h1>
      </div>
      <dl class="facts">
        <dt>A key without limits of its own</dt>
        <dd>
          {defaultKeyLimits.length > 0 ? `${defaultKeyLimits.join(', ')} requests` : 'any number of requests'}
          <p class="help">
            Set for all by <code>limits.default</code> in svc-api.yaml, for one on its page.
          </p>
        </dd>
        <dt>Keys that are not valid, from one address</dt>
        <dd>{failedCredentials ?? 'any number'}</dd>
      </dl>
      <h2>One GraphQL request</h2>
      <table>
        <thead>
          <tr>
            <th scope="col">What</th>
            <th scope="col" class="number">
              At most
            </th>
          </tr>
        </thead>
        <tbody>
          {Object.entries(REQUEST_LIMITS).map(([name, words]) => (
            <tr>
              <th scope="row">{words}</th>
              <td class="number">{request[name as keyof typeof REQUEST_LIMITS]?.toLocaleString('en') ?? 'any'}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </>
  );
}
