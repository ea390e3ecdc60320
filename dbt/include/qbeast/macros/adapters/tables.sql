{# dbt-spark's statement, but it checks every row against the constraints before the commit: a table is
   replaced by rows that fulfil its contract, or not at all. #}
{% macro qbeast__create_table_as(temporary, relation, compiled_code, language='sql') -%}
  {%- if temporary -%}
    {{ create_temporary_view(relation, compiled_code) }}
  {%- else -%}
    {%- set query = compiled_code -%}
    {%- if config.get('file_format') in ['delta', 'iceberg'] %}
    create or replace table {{ relation }}
    {%- else %}
    create table {{ relation }}
    {%- endif %}
    {%- if config.get('contract').enforced -%}
      {{ get_assert_columns_equivalent(query) }}
      {%- set query = get_select_subquery(query) -%}
      {%- set query = adapter.qbeast_checked_query(query, model) -%}
    {%- endif %}
    {{ file_format_clause() }}
    {{ options_clause() }}
    {{ tblproperties_clause() }}
    {{ partition_cols(label="partitioned by") }}
    {{ clustered_cols(label="clustered by") }}
    {{ location_clause() }}
    {{ comment_clause() }}
    as
    {{ query }}
  {%- endif -%}
{%- endmacro %}


{# dbt-spark's statement, but with properties: those of the model, except Delta's, which a view may have
   from its folder, and those that record the samples it reads. #}
{% macro qbeast__create_view_as(relation, sql) -%}
  {%- do qbeast_run_sql_header() -%}
  {%- set properties = {} -%}
  {%- for name, value in (config.get('tblproperties') or {}).items() if not name.startswith('delta.') -%}
    {%- do properties.update({name: value}) -%}
  {%- endfor -%}
  {%- do properties.update(adapter.qbeast_view_properties(model, graph)) -%}
  create or replace view {{ relation }}
  {%- if config.persist_column_docs() %}
    ({{ get_persist_docs_column_list(model.columns, get_columns_in_query(sql)) }})
  {%- endif %}
  {{ comment_clause() }}
  {{ qbeast_properties(properties) }}
  {%- if config.get('contract').enforced -%}
    {{ get_assert_columns_equivalent(sql) }}
  {%- endif %}
  as
    {{ sql }}
{%- endmacro %}


{# dbt's own macro drops a table that becomes a view before Spark has read the view's query. #}
{% macro qbeast__handle_existing_table(full_refresh, old_relation) %}
  {%- do adapter.qbeast_view_properties(model, graph) -%}
  {# Some headers can run only once. #}
  {%- if not config.get('sql_header') -%}
    {%- set query = sql.rstrip().rstrip(';') -%}
    {%- do get_columns_in_query(query) -%}
    {%- if config.get('contract').enforced -%}
      {%- do get_assert_columns_equivalent(query) -%}
    {%- endif -%}
  {%- endif -%}
  {{ default__handle_existing_table(full_refresh, old_relation) }}
{% endmacro %}


{# Delta cannot add NOT NULL to an existing column; a CHECK has the same effect. #}
{% macro qbeast__persist_constraints(relation, model) %}
  {%- if config.get('contract').enforced and config.get('file_format') == 'delta' -%}
    {%- for check in adapter.qbeast_checks(model) -%}
      {%- call statement() -%}
        alter table {{ relation }} add constraint {{ check.quoted_name }} check ({{ check.expression }})
      {%- endcall -%}
    {%- endfor -%}
  {%- endif -%}
{% endmacro %}


{# Makes one commit for each comment that differs. dbt-spark's macro never updates the relation's. #}
{% macro qbeast__persist_docs(relation, model, for_relation, for_columns) %}
  {%- if relation.is_delta -%}
    {% do adapter.qbeast_persist_docs(relation, config, model, for_relation, for_columns) %}
  {%- else -%}
    {% do spark__persist_docs(relation, model, for_relation, for_columns) %}
  {%- endif -%}
{% endmacro %}


{# dbt's own macro, but a described column that is missing fails no node whose rows are committed. #}
{% macro validate_doc_columns(relation, column_dict, existing_column_names) %}
  {{ return(adapter.qbeast_described_columns(relation, column_dict, existing_column_names)) }}
{% endmacro %}


{% macro qbeast__alter_relation_add_remove_columns(relation, add_columns, remove_columns) %}
  {%- if remove_columns -%}
    {% do adapter.qbeast_drop_columns(relation, remove_columns | map(attribute='column') | list) %}
  {%- endif -%}
  {%- if add_columns -%}
    {% do run_query('alter table ' ~ relation.render() ~ ' add columns ('
                    ~ qbeast_column_definitions(add_columns) ~ ')') %}
  {%- endif -%}
{% endmacro %}


{% macro qbeast__alter_column_type(relation, column_name, new_column_type) %}
  {% do run_query('alter table ' ~ relation.render() ~ ' alter column '
                  ~ adapter.quote(column_name) ~ ' type ' ~ new_column_type) %}
{% endmacro %}


{# Delta has no TRUNCATE, and other formats have no DELETE. A relation of ref() does not say its format. #}
{% macro qbeast__truncate_relation(relation) %}
  {%- set is_delta = (load_relation(relation) or relation).is_delta -%}
  {%- call statement('truncate_relation') -%}
    {{ 'delete from' if is_delta else 'truncate table' }} {{ relation.render() }}
  {%- endcall -%}
{% endmacro %}


{% macro qbeast_column_definitions(columns) -%}
  {%- for column in columns -%}
    {{ column.quoted }} {{ column.dtype }}{{ ', ' if not loop.last }}
  {%- endfor -%}
{%- endmacro %}


{# dbt-spark's macro returns the lines of `describe`, in which dbt's snapshots find no column names:
   they would lose the values of deleted rows. #}
{% macro qbeast__get_columns_in_relation(relation) -%}
  {{ return(adapter.get_columns_in_relation(relation)) }}
{%- endmacro %}
