/** A row of `api_keys`. Lists are JSON texts; times are milliseconds since 1970. */
export interface ApiKeyTable {
  id: string;
  name: string;
  description: string | null;
  roles: string;
  permissions: string;
  public_id: string;
  digest: string;
  created_at: number;
  created_by: string | null;
  expires_at: number | null;
  disabled_at: number | null;
  /** Name and description in the form in which they are searched. */
  search_text: string;
}

export interface Tables {
  api_keys: ApiKeyTable;
}
