import type { ListedEdge } from './edges.ts';
import type { Server } from '../../keys/operations/index.ts';
import { REQUESTS } from './requests.ts';

export const edges = (server: Server): Promise<ListedEdge[]> => server.ask(REQUESTS.edges, {});
