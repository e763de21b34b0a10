import { Fact, Time } from '../parts/notice.tsx';
import type { Pages, Visit } from '../visit.tsx';

const HEALTH = 'query Health { health { storeKind storeAnswers answeredInMs hearsChanges clockBehind } }';
const INFO = 'query Info { info { version startedAt runtime platform } }';

/** See `Health` of the schema. */
interface Health {
  readonly storeKind: 'SQLITE' | 'POSTGRESQL';
  readonly storeAnswers: boolean;
  readonly answeredInMs: number | null;
  readonly hearsChanges: boolean;
  readonly clockBehind: number;
}

/** See `Info` of the schema. */
interface Info {
  readonly version: string;
  readonly startedAt: string;
  readonly runtime: string;
  readonly platform: string;
}

const STORES = { SQLITE: 'SQLite', POSTGRESQL: 'PostgreSQL' } as const;

/** Adds the page with the state of the service and its key store. */
export function addHealth(pages: Pages): void {
  pages.get('health', async (visit) => {
    const [checks, info] = await Promise.all([askChecks(visit), visit.ask<Info>(INFO)]);
    return visit.page(
      'Health',
      <>
        <h1>Health</h1>
        <table>
          <thead>
            <tr>
              <th scope="col">Check</th>
              <th scope="col">State</th>
            </tr>
          </thead>
          <tbody>
            {checks.map(({ what, isWell, state, remedy }) => (
              <tr>
                <th scope="row">{what}</th>
                <td>
                  <span class={`status ${isWell ? 'active' : 'bad'}`}>{state}</span>
                  {!isWell && <p class="help">{remedy}</p>}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
        <h2>Program</h2>
        <dl class="facts">
          <Fact name="Version">{info.version}</Fact>
          <Fact name="Started">
            <Time at={info.startedAt} now={visit.now} />
          </Fact>
          <Fact name="Runs on">
            {info.runtime}, {info.platform}
          </Fact>
        </dl>
      </>,
    );
  });
}

/** One line of the health page. */
interface Check {
  readonly what: string;
  readonly isWell: boolean;
  readonly state: string;
  readonly remedy: string;
}

/** Checks the service and its key store. @throws OperationFailed */
export async function askChecks(visit: Visit): Promise<Check[]> {
  const { storeKind, storeAnswers, answeredInMs, hearsChanges, clockBehind } = await visit.ask<Health>(HEALTH);
  return [
    {
      what: `Key store, ${STORES[storeKind]}`,
      isWell: storeAnswers,
      state: answeredInMs === null ? 'does not answer' : `answers in ${answeredInMs.toFixed(1)} ms`,
      remedy: "All requests are refused until it answers. See the server's log for the cause.",
    },
    {
      what: 'Change notifications',
      isWell: hearsChanges,
      state: hearsChanges ? 'instant' : 'not working',
      remedy:
        "Until this works again, each request queries the store and takes longer. See the server's log for the cause.",
    },
    {
      what: 'Clock',
      isWell: clockBehind === 0,
      state: clockBehind === 0 ? 'in sync' : `${Math.round(clockBehind)} seconds behind the audit log`,
      remedy: "Correct the machine's clock: it decides when keys expire.",
    },
  ];
}

const LIMITS = `{
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
  cost: 'Query cost',
  timeMs: 'Time in milliseconds',
  nodes: 'Fields and items resolved',
  characters: 'Response size in characters',
  pageSize: 'Page size',
  depth: 'Query depth',
  fields: 'Fields',
  aliases: 'Aliases',
  directives: 'Directives',
  fragments: 'Fragments',
  tokens: 'Query tokens',
  nesting: 'Bracket depth',
  errors: 'Errors per response',
} as const;

/** Adds the page with the limits of all keys and requests. */
export function addLimits(pages: Pages): void {
  pages.get('limits', async (visit) => {
    const { defaultKeyLimits, failedCredentials, request } = await visit.ask<ServiceLimits>(LIMITS);
    return visit.page(
      'Limits',
      <>
        <h1>Limits</h1>
        <dl class="facts">
          <Fact name="Default limits">
            {defaultKeyLimits.length > 0 ? `${defaultKeyLimits.join(', ')} requests` : 'unlimited'}
            <p class="help">
              For keys without limits of their own. Set them with <code>limits.default</code> in svc-api.yaml.
            </p>
          </Fact>
          <Fact name="Invalid keys from one address">{failedCredentials ?? 'unlimited'}</Fact>
        </dl>
        <h2>One GraphQL request</h2>
        <table>
          <thead>
            <tr>
              <th scope="col">Limit</th>
              <th scope="col" class="number">
                At most
              </th>
            </tr>
          </thead>
          <tbody>
            {Object.entries(REQUEST_LIMITS).map(([name, words]) => (
              <tr>
                <th scope="row">{words}</th>
                <td class="number">
                  {request[name as keyof typeof REQUEST_LIMITS]?.toLocaleString('en') ?? 'unlimited'}
                </td>
              </tr>
            ))}
          </tbody>
        </table>
      </>,
    );
  });
}
