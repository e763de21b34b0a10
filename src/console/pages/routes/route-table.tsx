/** A route, see `Route` of the schema. */
export interface ShownRoute {
  readonly number: number;
  readonly line: number | null;
  readonly host: string;
  readonly path: string;
  readonly methods: readonly string[] | null;
  readonly requires: string;
}

/** What is shown of a route, as a selection of GraphQL. */
export const ROUTE_FIELDS = 'number line host path methods requires';

/** A route, and why another one decides in its place. */
export interface HiddenRoute extends ShownRoute {
  /** The numbers of the routes that do. */
  readonly hiddenBy: readonly number[];
}

/** Routes as a table, in the order of the file. */
export function RouteTable({ routes }: { routes: readonly HiddenRoute[] }) {
  return (
    <table class="list">
      <thead>
        <tr>
          <th scope="col" class="number">
            Route
          </th>
          <th scope="col">Methods</th>
          <th scope="col">Host and path</th>
          <th scope="col">Requires</th>
        </tr>
      </thead>
      <tbody>
        {routes.map((route) => (
          <tr id={`route-${route.number}`}>
            <th scope="row" class="number">
              {route.number}
              {route.line !== null && <span class="faint">{` line ${route.line}`}</span>}
            </th>
            <td data-label="Methods">{methodsOf(route)}</td>
            <td data-label="Host and path">
              <RoutePattern route={route} />
            </td>
            <td data-label="Requires">
              {route.requires}
              {route.hiddenBy.length > 0 && (
                <span class="warning">{` never decides: ${listOfRoutes(route.hiddenBy)} before it`}</span>
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** A route in a sentence: its number, methods, host and path, and what it requires. */
export function RouteText({ route }: { route: ShownRoute }) {
  return (
    <>
      {`Route ${route.number}: ${methodsOf(route)} `}
      <RoutePattern route={route} />
      {` requires ${route.requires}`}
    </>
  );
}

function RoutePattern({ route: { host, path } }: { route: ShownRoute }) {
  return (
    <code>
      <span class="faint">{host === '*' ? '' : host}</span>
      {path}
    </code>
  );
}

function methodsOf({ methods }: ShownRoute): string {
  return methods ? methods.join(', ') : 'all methods';
}

function listOfRoutes(numbers: readonly number[]): string {
  return `${numbers.length === 1 ? 'route' : 'routes'} ${numbers.join(', ')} ${numbers.length === 1 ? 'is' : 'are'}`;
}
