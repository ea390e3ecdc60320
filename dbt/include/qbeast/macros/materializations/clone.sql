{# Creates a shallow clone of a Delta table in one commit, or a view of what is a view in the state. #}
{% materialization clone, adapter='qbeast' %}
  {%- if not defer_relation -%}
    {% do log('No relation found in state manifest for ' ~ model.unique_id, info=true) %}
    {{ return({'relations': []}) }}
  {%- endif -%}
  {%- set existing = load_cached_relation(this) -%}
  {%- if existing is not none and not flags.FULL_REFRESH -%}
    {% do log('Relation ' ~ existing ~ ' already exists', info=true) %}
    {{ return({'relations': []}) }}
  {%- endif -%}

  {%- set source = load_cached_relation(defer_relation) -%}
  {%- if source is none or not source.is_table -%}
    {{ return(create_or_replace_view()) }}
  {%- endif -%}
  {%- do adapter.qbeast_check_cloneable(source) -%}
  {# The clone has the properties of the state's table. This fails if the target does not allow samples. #}
  {%- do adapter.qbeast_built_from(model, graph) -%}
  {%- set target_relation = this.incorporate(type='table', is_delta=true) -%}
  {%- do apply_grants(this, config.get('grants'), should_revoke=false) -%}
  {# Spark ignores the case of names, and lists them in lower case. #}
  {%- if target_relation.render() | lower == source.render() | lower -%}
    {% do log('The state describes this target: skipping clone for relation ' ~ target_relation, info=true) %}
    {{ return({'relations': [target_relation]}) }}
  {%- endif -%}

  {%- if existing is not none and existing.is_delta -%}
    {%- set clone_sql = create_or_replace_clone(target_relation, source) -%}
    {% do store_result('main', response=adapter.qbeast_clone_onto(target_relation, clone_sql)) %}
  {%- else -%}
    {%- set location = adapter.qbeast_location(config, model) -%}
    {%- if location is not none -%}
      {% do adapter.qbeast_check_other_location(source, location) %}
    {%- endif -%}
    {%- if existing is not none -%}
      {% do adapter.drop_relation(existing) %}
    {%- endif -%}
    {%- call statement('main') -%}
      {{ create_or_replace_clone(target_relation, source) }}
    {%- endcall -%}
  {%- endif -%}
  {% do persist_docs(target_relation, model) %}
  {{ return({'relations': [target_relation]}) }}
{% endmaterialization %}


{# dbt-spark's statement, but with the location of a new table: a later run does not move the table.
   Delta ignores the location of a table that exists. #}
{% macro qbeast__create_or_replace_clone(this_relation, defer_relation) %}
  create or replace table {{ this_relation }} shallow clone {{ defer_relation }}
  {{ location_clause() }}
{% endmacro %}
